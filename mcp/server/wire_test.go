package server_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

var update = flag.Bool("update", false, "write what the server answers into testdata")

// TestWire sends the lines under "client" one after the other, each when the
// server has nothing left to do for the one before, and compares all it writes
// with "server". A client line in double quotes is a Go string, for bytes that
// a text file cannot hold; "wait DURATION" lets time pass, and "change NAME" has a
// resource, or the list of prompts or resources, of a server that offers them change.
func TestWire(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 2 || archive.Files[0].Name != "client" || archive.Files[1].Name != "server" {
				t.Fatalf("%s must have the files client and server (%v)", file, err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) {
				s, o := newServer(), &offers{}
				if strings.HasPrefix(filepath.Base(file), "offers_") {
					s, o = newOfferingServer()
				}
				got = exchange(t, s, o, string(archive.Files[0].Data))
			})
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(archive.Files[1].Data); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// exchange returns what a server writes in answer to script.
func exchange(t *testing.T, s *server.Server, o *offers, script string) string {
	t.Helper()
	w := startWire(t, s)
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		pause, isPause := strings.CutPrefix(line, "wait ")
		changed, isChange := strings.CutPrefix(line, "change ")
		switch {
		case isChange:
			o.change(changed)
		case isPause:
			d, err := time.ParseDuration(pause)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(d)
		case strings.HasPrefix(line, `"`):
			raw, err := strconv.Unquote(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			w.send(raw)
		default:
			w.send(line)
		}
		synctest.Wait()
	}
	if err := w.close(); err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
	if n := o.watching(); n != 0 {
		t.Errorf("%d watches are left when the client has gone", n)
	}
	return w.output()
}

// wire is a client that sends and gets plain lines.
type wire struct {
	t      *testing.T
	in     *io.PipeWriter
	served chan error
	read   chan struct{}

	mu    sync.Mutex
	grown *sync.Cond // out has another line, or is complete
	out   strings.Builder
	ended bool
}

func startWire(t *testing.T, s *server.Server) *wire {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	w := &wire{t: t, in: toServer, served: make(chan error, 1), read: make(chan struct{})}
	w.grown = sync.NewCond(&w.mu)
	go func() {
		err := s.ServeStdio(context.Background(), fromClient, toClient)
		_ = toClient.Close()
		w.served <- err
	}()
	go func() {
		defer close(w.read)
		lines := bufio.NewScanner(fromServer)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			w.mu.Lock()
			w.out.WriteString(lines.Text() + "\n")
			w.mu.Unlock()
			w.grown.Broadcast()
		}
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.grown.Broadcast()
	}()
	return w
}

func (w *wire) send(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// close ends the input and returns what ServeStdio returned.
func (w *wire) close() error {
	_ = w.in.Close()
	err := <-w.served
	<-w.read
	return err
}

// await waits until the server has written text.
func (w *wire) await(text string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !strings.Contains(w.out.String(), text) {
		if w.ended {
			w.t.Fatalf("no %s in %.10000s", text, w.out.String())
		}
		w.grown.Wait()
	}
}

func (w *wire) output() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

// waitFor lets the time of a bubble pass, a second a step, until the server has
// written text; at most ten.
func waitFor(w *wire, text string) {
	w.t.Helper()
	for range 10 {
		<-time.After(time.Second)
		synctest.Wait()
		if strings.Contains(w.output(), text) {
			return
		}
	}
	w.t.Fatalf("no %s in %s", text, w.output())
}

// call is a tools/call request.
func call(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}
