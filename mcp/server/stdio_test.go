package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// newBlocking returns a server whose tool block tells the test about itself.
func newBlocking(calls int) (*server.Server, *blocked) {
	seen := &blocked{started: make(chan string, calls), ended: make(chan error, calls)}
	s := server.New(server.Options{Version: "test", OutputSchemas: true})
	server.Add(s, block(seen))
	server.Add(s, echo)
	return s, seen
}

// Clients of one server share nothing, even where their ids are equal.
func TestTwoClients(t *testing.T) {
	t.Parallel()
	s, seen := newBlocking(2)
	a, b := startWire(t, s), startWire(t, s)
	a.send(call(1, "block", `{}`))
	b.send(call(1, "block", `{}`))
	<-seen.started
	<-seen.started
	a.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if err := <-seen.ended; !errors.Is(err, server.ErrRequestCancelled) {
		t.Errorf("cause = %v", err)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	if err := <-seen.ended; !errors.Is(err, server.ErrClientGone) {
		t.Errorf("cause of the other client's call = %v", err)
	}
	if err := a.close(); err != nil || a.output() != "" {
		t.Errorf("cancelled call: %v, %q", err, a.output())
	}
}

// A message that a tool has mcp-go tell the client comes before the answer of the tool.
func TestNotificationBeforeAnswer(t *testing.T) {
	t.Parallel()
	const calls = 50
	s := server.New(server.Options{Version: "test", OutputSchemas: true})
	notify := echo
	notify.Handle = func(ctx context.Context, call server.Call, _ echoIn) (echoOut, error) {
		said := map[string]any{"about": call.RequestID}
		return echoOut{Success: true}, mcpserver.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/message", said)
	}
	server.Add(s, notify)
	w := startWire(t, s)
	w.send(initialize)
	for id := range calls {
		w.send(call(id+1, "echo", `{"text":"x"}`))
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= calls; id++ {
		said := strings.Index(w.output(), fmt.Sprintf(`"about":"%d"`, id))
		if answer := strings.Index(w.output(), fmt.Sprintf(`"id":%d,`, id)); said < 0 || answer < said {
			t.Errorf("call %d: told at %d, answered at %d", id, said, answer)
		}
	}
}

func TestEndOfInputEndsCalls(t *testing.T) {
	t.Parallel()
	s, seen := newBlocking(1)
	w := startWire(t, s)
	w.send(call(1, "block", `{}`))
	<-seen.started
	if err := w.close(); err != nil {
		t.Errorf("ServeStdio = %v, want nil", err)
	}
	if err := <-seen.ended; !errors.Is(err, server.ErrClientGone) {
		t.Errorf("cause = %v, want ErrClientGone", err)
	}
	if got := w.output(); !strings.Contains(got, `"code":"cancelled"`) {
		t.Errorf("the answer of the ended call is missing: %q", got)
	}
}

func TestLastLineWithoutNewline(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err := newServer().ServeStdio(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	if want := `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestContextEndsServing(t *testing.T) {
	t.Parallel()
	s, seen := newBlocking(1)
	in, toServer := io.Pipe()
	defer func() { _ = toServer.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(ctx, in, io.Discard) }()
	if _, err := io.WriteString(toServer, call(1, "block", `{}`)+"\n"); err != nil {
		t.Fatal(err)
	}
	<-seen.started
	signalled := errors.New("signalled")
	cancel(signalled)
	if err := <-served; !errors.Is(err, signalled) {
		t.Errorf("ServeStdio = %v, want the cause of ctx", err)
	}
	if err := <-seen.ended; !errors.Is(err, signalled) {
		t.Errorf("cause of the call = %v, want the cause of ctx", err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestFailingStreamsEndServing(t *testing.T) {
	t.Parallel()
	t.Run("last write", func(t *testing.T) {
		t.Parallel()
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
		if err := newServer().ServeStdio(t.Context(), in, brokenWriter{}); !errors.Is(err, errBroken) {
			t.Errorf("ServeStdio = %v, want the write error", err)
		}
	})
	t.Run("write", func(t *testing.T) {
		t.Parallel()
		s, seen := newBlocking(1)
		in, toServer := io.Pipe()
		defer func() { _ = toServer.Close() }()
		served := make(chan error, 1)
		go func() { served <- s.ServeStdio(t.Context(), in, brokenWriter{}) }()
		if _, err := io.WriteString(toServer, call(1, "block", `{}`)+"\n"); err != nil {
			t.Fatal(err)
		}
		<-seen.started
		if _, err := io.WriteString(toServer, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-served; !errors.Is(err, errBroken) {
			t.Errorf("ServeStdio = %v, want the write error", err)
		}
		if err := <-seen.ended; !errors.Is(err, server.ErrClientGone) {
			t.Errorf("cause = %v, want ErrClientGone", err)
		}
	})
	t.Run("read", func(t *testing.T) {
		t.Parallel()
		err := newServer().ServeStdio(t.Context(), iotest.ErrReader(errBroken), io.Discard)
		if !errors.Is(err, errBroken) {
			t.Errorf("ServeStdio = %v, want the read error", err)
		}
	})
}

// A handler that ignores its context delays the end by the grace period only.
func TestStuckHandlerDelaysEndByGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := server.New(server.Options{OutputSchemas: true})
		server.Add(s, server.Tool[blockIn, blockOut]{
			Name: "stuck", Description: "Never listens.", Annotations: server.Annotations{Title: "Stuck"},
			Handle: func(context.Context, server.Call, blockIn) (blockOut, error) {
				<-release
				return blockOut{Success: true}, nil
			},
		})
		w := startWire(t, s)
		w.send(call(1, "stuck", `{}`))
		synctest.Wait()
		began := time.Now()
		if err := w.close(); err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
		if waited := time.Since(began); waited != 2*time.Second { // in the bubble's time
			t.Errorf("waited %v, want 2s", waited)
		}
		close(release)
		synctest.Wait()
		if got := w.output(); got != "" {
			t.Errorf("written after the end: %s", got)
		}
	})
}

// A client that does not read makes the server stop reading, and gets every
// answer once it does read.
func TestBackPressure(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// Refusals, as they are answered before the next line is read; each is as
		// long as its id, and 500 of them are more than may wait.
		const lines = 1000
		refused := `{"jsonrpc":"1.0","id":"` + strings.Repeat("x", 40_000) + `","method":"ping"}` + "\n"
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		served := make(chan error, 1)
		go func() {
			err := newServer().ServeStdio(context.Background(), fromClient, toClient)
			_ = toClient.Close()
			served <- err
		}()
		sent := 0
		go func() {
			for sent < lines {
				if _, err := io.WriteString(toServer, refused); err != nil {
					t.Error(err)
				}
				sent++
			}
			_ = toServer.Close()
		}()
		synctest.Wait()
		if sent == lines {
			t.Fatal("the server reads on although nobody reads its answers")
		}
		answers := bufio.NewScanner(fromServer)
		answers.Buffer(nil, 1<<20)
		got := 0
		for answers.Scan() {
			got++
		}
		if err := <-served; err != nil || got != lines {
			t.Errorf("%d answers, %v; want %d", got, err, lines)
		}
	})
}
