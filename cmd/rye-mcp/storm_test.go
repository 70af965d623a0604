package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// wire is a server process whose lines a test writes itself.
type wire struct {
	p     *place
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

// wire starts a program that serves MCP on stdio, and says hello.
func (p *place) wire(program string, arguments ...string) *wire {
	p.Helper()
	w := &wire{p: p, cmd: exec.Command(program, arguments...)}
	w.cmd.Dir, w.cmd.Env = p.dir, p.env
	var err error
	w.in, err = w.cmd.StdinPipe()
	p.noError(err)
	out, err := w.cmd.StdoutPipe()
	p.noError(err)
	w.lines = bufio.NewReader(out)
	p.noError(w.cmd.Start())
	p.Cleanup(func() { _ = w.cmd.Process.Kill() })
	w.say(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := w.hear(); got.id != `"hello"` {
		p.Fatalf("the first answer is %+v", got)
	}
	return w
}

// end closes the input and waits for the end of the server.
func (w *wire) end() {
	w.p.Helper()
	w.p.noError(w.in.Close())
	if _, err := io.Copy(io.Discard, w.lines); err != nil {
		w.p.Error(err)
	}
	if err := w.cmd.Wait(); err != nil {
		w.p.Errorf("the server ended with %v", err)
	}
}

func (w *wire) say(line string) {
	w.p.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.p.Errorf("write: %v", err)
	}
}

// heard is an answer; its id is JSON.
type heard struct {
	id     string
	failed bool
}

// hear reads the next answer. It fails the test when a line is none.
func (w *wire) hear() heard {
	w.p.Helper()
	line, err := w.lines.ReadBytes('\n')
	if err != nil {
		w.p.Fatalf("the server says no more: %v", err)
	}
	var message struct {
		JSONRPC       string
		ID            json.RawMessage
		Result, Error json.RawMessage
	}
	if err := json.Unmarshal(line, &message); err != nil || message.JSONRPC != "2.0" || (message.Result == nil) == (message.Error == nil) {
		w.p.Fatalf("not an answer: %.400q (%v)", line, err)
	}
	return heard{id: string(message.ID), failed: message.Error != nil}
}

// nonsense is what no client should send. A message with an id has one that
// begins with "x", and may be answered or not.
func nonsense(r *rand.Rand) string {
	tests := []func() string{
		func() string { return "" },
		func() string { return `{"jsonrpc":"2.0","id":"x` },
		func() string { return string(randomBytes(r, 1+r.IntN(200))) },
		func() string { return strings.Repeat("[", 1+r.IntN(20_000)) },
		func() string {
			n := 1 + r.IntN(5_000)
			return `{"jsonrpc":"2.0","id":"x1","method":"tools/call","params":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + `}`
		},
		func() string { return `{"jsonrpc":"2.0","id":"x2","method":"tools/list","params":{}}` }, // often in flight twice
		func() string { return `{"jsonrpc":"2.0","id":null,"method":"ping"}` },
		func() string { return `{"jsonrpc":"2.0","id":{"x":1},"method":"ping"}` },
		func() string {
			return `[{"jsonrpc":"2.0","id":"x3","method":"ping"},{"jsonrpc":"2.0","id":"x3","method":"ping"}]`
		},
		func() string { return `{"jsonrpc":"2.0","id":"x4","result":{}}` },
		func() string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":"x5","method":%q}`, randomBytes(r, 30)) },
		func() string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x%d"}}`, r.IntN(9))
		},
		func() string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":"x6","method":"tools/call","params":{"name":"get_status","arguments":{"thread_id":%q}}}`, randomBytes(r, 80))
		},
		func() string {
			return `{"jsonrpc":"2.0","id":"x7","method":"tools/call","params":{"name":"wait_threads","arguments":{"thread_ids":["none-1"],"timeout":1e308}}}`
		},
	}
	return strings.ReplaceAll(tests[r.IntN(len(tests))](), "\n", " ")
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

// TestStorm sends a server ten thousand messages that make no sense, among them
// lines of 12 MB, while its threads run. Every sensible request is answered
// once, and server and threads live on.
func TestStorm(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const every = 100 // messages to a sensible one
	messages := sized(10_000, 10_000)
	p := newPlace(t, fmt.Sprintf(loaded, 10))
	looking := p.serve()
	ids := startMany([]*host{looking}, "slow", 3)
	p.wantCalls(len(ids))

	w := p.wire(p.program, "--stdio")
	r := rand.New(rand.NewPCG(1, 2))
	wanted := map[string]bool{}
	for i := range messages / every {
		wanted[fmt.Sprint(i)] = true
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		huge := `{"jsonrpc":"2.0","id":"x8","method":"ping","params":{"a":"` + strings.Repeat("a", 12<<20) + `"}}`
		for i := range messages {
			switch {
			case i%every == 0:
				w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"get_status","arguments":{"thread_id":%q}}}`,
					i/every, ids[0]))
			case i%(messages/3) == 1:
				w.say(huge)
			default:
				w.say(nonsense(r))
			}
		}
	}()
	for len(wanted) > 0 {
		answer := w.hear()
		switch {
		case wanted[answer.id]:
			if answer.failed {
				t.Errorf("request %s has failed", answer.id)
			}
			delete(wanted, answer.id)
		case !strings.HasPrefix(answer.id, `"x`) && answer.id != "null" && !strings.HasPrefix(answer.id, "{"):
			t.Errorf("request %s was answered twice, or not asked", answer.id)
		}
	}
	<-said
	w.leaveInMidCall(ids)

	for _, active := range allActive(looking) {
		if active.Status != thread.Running {
			t.Errorf("%s is %s", active.ThreadID, active.Status)
		}
	}
	p.model.release()
	wantCompleted(looking, ids)
	looking.close()
	p.wantRest(looking)
}

// leaveInMidCall goes away while calls are in flight and half a message is
// sent. The server ends, the threads go on.
func (w *wire) leaveInMidCall(ids []thread.ID) {
	w.p.Helper()
	waiting, err := json.Marshal(ids)
	w.p.noError(err)
	for i := range 10 {
		w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"wait-%d","method":"tools/call","params":{"name":"wait_threads","arguments":{"thread_ids":%s}}}`, i, waiting))
	}
	if _, err := io.WriteString(w.in, `{"jsonrpc":"2.0","id":"half","method":"pi`); err != nil {
		w.p.Errorf("write: %v", err)
	}
	w.p.noError(w.in.Close())
	rest, err := io.ReadAll(w.lines)
	w.p.noError(err)
	if bytes.Contains(rest, []byte(`"result":{"content"`)) && bytes.Contains(rest, []byte(`"completed"`)) {
		w.p.Errorf("a wait for what runs on was answered: %s", rest)
	}
	if err := w.cmd.Wait(); err != nil {
		w.p.Errorf("the server ended with %v", err)
	}
}
