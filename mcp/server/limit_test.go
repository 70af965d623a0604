package server_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

func TestTooManyInFlight(t *testing.T) {
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
