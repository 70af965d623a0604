package server

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// openConn returns a connection whose messages nobody reads.
func openConn(t *testing.T, s *Server) *conn {
	t.Helper()
	c := newConn(s, "test", newOutbox(), new(load), newWorkerPool())
	t.Cleanup(func() {
		c.end(context.Background(), ErrClientGone)
		close(c.workers.stop)
	})
	return c
}

// Long messages are admitted one by one, and several only up to the bound.
func TestAdmitBoundsBytes(t *testing.T) {
	t.Parallel()
	c := openConn(t, New(Options{}))
	enter := func(id string, size int) (*request, *rpcError) {
		_, stop := context.WithCancelCause(t.Context())
		t.Cleanup(func() { stop(nil) })
		r := &request{conn: c, out: c.out, stop: stop, msg: message{id: requestID{key: id}, raw: make([]byte, size)}}
		err := c.admit(r)
		if err == nil {
			c.handlers.Done() // none runs
		}
		return r, err
	}
	first, err := enter("1", maxInFlightBytes+1)
	if err != nil {
		t.Errorf("a long message alone: %v", err.Message)
	}
	if _, err := enter("2", 1); err == nil || err.Code != codeBusy {
		t.Errorf("one more beyond the bound: %+v, want busy", err)
	}
	c.load.remove(len(first.msg.raw))
	if _, err := enter("3", maxInFlightBytes); err != nil {
		t.Errorf("after the first was answered: %v", err.Message)
	}
	if _, err := enter("3", 0); err == nil || err.Code == codeBusy {
		t.Errorf("an id in flight: %+v, want invalid request", err)
	}
}

// A connection that has ended admits nothing, however late it comes.
func TestEndedConnAdmitsNothing(t *testing.T) {
	t.Parallel()
	c := newConn(New(Options{}), "test", newOutbox(), new(load), newWorkerPool())
	c.end(t.Context(), ErrClientGone)
	out := newOutbox()
	r := c.receive(t.Context(), message{kind: kindRequest, id: requestID{raw: []byte("1"), key: "1"}, method: mcp.MethodPing}, out, true)
	if refusal := r.refusal(); refusal == nil || refusal.Code != codeBusy {
		t.Errorf("refusal %+v, want busy", refusal)
	}
	if _, closed := out.take(nil); !closed {
		t.Error("the outbox of the refused request stays open")
	}
}

// A panic beside the tools is an answer, not the end of the process.
func TestHandleSurvivesPanics(t *testing.T) {
	t.Parallel()
	c := openConn(t, New(Options{}))
	broken := &conn{server: &Server{}, session: c.session} // without a protocol server to ask
	_, err := broken.handle(t.Context(), &request{conn: broken, msg: message{raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), method: mcp.MethodPing}})
	if want := "ping failed inside rye-mcp; its log has the details"; err == nil || err.Code != mcp.INTERNAL_ERROR || err.Message != want {
		t.Errorf("error %+v, want %q", err, want)
	}
}
