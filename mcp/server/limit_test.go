package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

func TestTooManyInFlight(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const most = 1024
	s, seen := newBlocking(most + 1)
	c := servertest.Start(t, s)
	pending := make([]*servertest.Pending, most)
	for i := range pending {
		pending[i] = c.CallAsync("block", struct{}{})
	}
	for range pending {
		<-seen.started
	}
	refused := c.Call("block", struct{}{})
	if refused.Err == nil || refused.Err.Code != -32000 || !strings.Contains(refused.Err.Message, "1024") {
		t.Errorf("call beyond the limit = %+v, want an error that says so", refused)
	}
	pending[0].Cancel()
	if err := <-seen.ended; !errors.Is(err, server.ErrRequestCancelled) {
		t.Errorf("cause = %v", err)
	}
	// The place is free when the cancelled handler has returned, which nothing
	// tells; ask until it is.
	for {
		if r := c.Call("echo", echoIn{Text: "x", Repeat: 1}); r.Err == nil {
			break
		}
	}
	for _, p := range pending[1:] {
		p.Cancel()
	}
}

func TestOverlongLine(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const most = 10 << 20
	pad := func(prefix, suffix string, n int) string {
		return prefix + strings.Repeat("x", n-len(prefix)-len(suffix)) + suffix
	}
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`, `"}}`
	tests := []struct{ name, line, want string }{
		{"longest", pad(head, tail, most), `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"id last", pad(`{"method":"ping","params":{"x":"`, `"}, "id": "a\"b" }`+"\r", most+1), `"id":"a\"b","error":{"code":-32600,`},
		{"junk", strings.Repeat("[", most*2), `"id":null,"error"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := startWire(t, newServer())
			w.send(tt.line)
			w.send(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
			w.await(`{"jsonrpc":"2.0","id":"after","result":{}}`)
			w.await(tt.want)
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			if got := w.output(); strings.Count(got, "\n") != 2 {
				t.Errorf("more than two answers: %s", got)
			}
		})
	}
}

// An id is free as soon as its request is cancelled, though the handler still runs.
// When that returns, the id is of whoever has it by then.
func TestIDOfACancelledRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen := newBlocking(2)
		lingers := make(chan struct{})
		server.Add(s, server.Tool[blockIn, blockOut]{
			Name: "linger", Description: "Goes on when it is cancelled.", Annotations: server.Annotations{Title: "Linger", ReadOnly: true},
			Handle: func(context.Context, server.Call, blockIn) (blockOut, error) {
				<-lingers
				return blockOut{}, nil
			},
		})
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
		w := startWire(t, s)
		for _, line := range []string{call(1, "linger", `{}`), cancel, call(1, "block", `{}`)} {
			w.send(line)
			synctest.Wait()
		}
		close(lingers)
		synctest.Wait()
		w.send(call(1, "echo", `{"text":"x","repeat":1}`))
		synctest.Wait()
		if got := w.output(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "id 1 is in use") {
			t.Errorf("an id in use was taken again: %s", got)
		}
		w.send(cancel)
		synctest.Wait()
		select {
		case err := <-seen.ended:
			if !errors.Is(err, server.ErrRequestCancelled) {
				t.Errorf("cause = %v", err)
			}
		default:
			t.Error("the request that has the id was not cancelled")
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}
