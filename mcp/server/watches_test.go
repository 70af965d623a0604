package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// heard are the notifications of a client.
type heard struct {
	mu   sync.Mutex
	all  []string
	more chan struct{}
}

func hearing() (*heard, servertest.Option) {
	h := &heard{more: make(chan struct{}, 1)}
	return h, servertest.OnNotification(func(method string, params json.RawMessage) {
		h.mu.Lock()
		h.all = append(h.all, method+" "+string(params))
		h.mu.Unlock()
		select {
		case h.more <- struct{}{}:
		default:
		}
	})
}

// await waits for a notification that has a text, and forgets those so far.
func (h *heard) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		h.mu.Lock()
		all := h.all
		found := slices.ContainsFunc(all, func(n string) bool { return strings.Contains(n, text) })
		if found {
			h.all = nil
		}
		h.mu.Unlock()
		if found {
			return
		}
		select {
		case <-h.more:
		case <-late:
			t.Fatalf("heard %q, want %q", all, text)
		}
	}
}

// Nothing is watched for a client that has gone, whatever way it went.
func TestNothingIsWatchedForClientsThatHaveGone(t *testing.T) {
	t.Parallel()
	for _, transport := range servertest.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			s, o := newOfferingServer()
			t.Cleanup(func() { // when the server has ended
				if n := o.watching(); n != 0 {
					t.Errorf("%d watches are left", n)
				}
			})
			h, option := hearing()
			c := servertest.Start(t, s, servertest.Over(transport), option)
			if transport == servertest.Stateless {
				p := c.Listen(map[string]any{"promptsListChanged": true, "resourceSubscriptions": []string{"test://a"}})
				h.await(t, "acknowledged")
				o.change("test://a")
				h.await(t, `"uri":"test://a"`)
				p.Cancel()
				return
			}
			for method, params := range map[string]map[string]any{"prompts/list": {}, "resources/list": {}, "resources/subscribe": {"uri": "test://a"}} {
				if _, rpcErr := c.Request(method, params); rpcErr != nil {
					t.Fatal(rpcErr)
				}
			}
			if n := o.watching(); n != 3 {
				t.Errorf("%d watches, want 3", n)
			}
			o.change("test://a")
			h.await(t, `"uri":"test://a"`)
			o.change("prompts")
			h.await(t, "prompts/list_changed")
		})
	}
}

// TestAttackTooManySubscriptions: a client subscribes to more resources than one may, and listens to a hundred thousand.
// Subscriptions that are too many are refused and the rest is told, and the server goes on.
func TestAttackTooManySubscriptions(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, o := newOfferingServer()
	h, option := hearing()
	c := servertest.Start(t, s, servertest.Speaking("2026-07-28"), option)
	uris := make([]string, 100_000)
	for i := range uris {
		uris[i] = fmt.Sprintf("test://%d", i)
	}
	c.Listen(map[string]any{"resourceSubscriptions": uris})
	h.await(t, "acknowledged")
	if n := o.watching(); n < 1000 || n > 5000 {
		t.Errorf("%d are watched", n)
	}
	o.change("test://999")
	h.await(t, `"uri":"test://999"`)
}

// A client that cannot be sent events cannot listen.
func TestListeningNeedsEvents(t *testing.T) {
	t.Parallel()
	s, o := newOfferingServer()
	url := servertest.Serve(t, s, server.HTTPOptions{})
	answer := postModern(t, url, "application/json", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if !strings.Contains(answer, "text/event-stream") || o.watching() != 0 {
		t.Errorf("answered with %s", answer)
	}
}

// A method that panics fails alone.
func TestPanicInAMethod(t *testing.T) {
	t.Parallel()
	s := newServer()
	server.Handle(s, "test/panic", server.Always, func(context.Context, server.Call, struct{}) (mcp.ResultMetadata, error) {
		panic("secret of the stack")
	})
	c := servertest.Start(t, s)
	_, rpcErr := c.Request("test/panic", map[string]any{})
	if rpcErr == nil || rpcErr.Code != -32603 || strings.Contains(rpcErr.Message, "secret") {
		t.Errorf("got %v", rpcErr)
	}
	if _, rpcErr := c.Request("ping", map[string]any{}); rpcErr != nil {
		t.Error(rpcErr)
	}
}
