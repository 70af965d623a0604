package server

import (
	"context"
	"io"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// Long messages are admitted one by one, and several only up to the bound.
func TestAdmitBoundsBytes(t *testing.T) {
	t.Parallel()
	out := newOutbox(io.Discard)
	defer func() { out.close(); <-out.done }()
	c := newConn(New(Options{}), out)
	enter := func(id string, size int) (*request, *rpcError) {
		_, stop := context.WithCancelCause(t.Context())
		t.Cleanup(func() { stop(nil) })
		r := &request{conn: c, stop: stop, msg: message{id: requestID{key: id}, raw: make([]byte, size)}}
		return r, c.admit(r)
	}
	first, err := enter("1", maxInFlightBytes+1)
	if err != nil {
		t.Errorf("a long message alone: %v", err.Message)
	}
	if _, err := enter("2", 1); err == nil || err.Code != codeBusy {
		t.Errorf("one more beyond the bound: %+v, want busy", err)
	}
	c.release(first)
	if _, err := enter("3", maxInFlightBytes); err != nil {
		t.Errorf("after the first was answered: %v", err.Message)
	}
	if _, err := enter("3", 0); err == nil || err.Code == codeBusy {
		t.Errorf("an id in flight: %+v, want invalid request", err)
	}
}

// A panic beside the tools is an answer, not the end of the process.
func TestHandleSurvivesPanics(t *testing.T) {
	t.Parallel()
	out := newOutbox(io.Discard)
	defer func() { out.close(); <-out.done }()
	c := newConn(&Server{}, out) // without a protocol server to ask
	_, err := c.handle(t.Context(), &request{conn: c, msg: message{raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), method: mcp.MethodPing}})
	if want := "ping failed inside rye-mcp; its log has the details"; err == nil || err.Code != mcp.INTERNAL_ERROR || err.Message != want {
		t.Errorf("error %+v, want %q", err, want)
	}
}
