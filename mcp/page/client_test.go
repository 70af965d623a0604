package page

import (
	"net/http"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// TestAttackAppAsPerson: the client of an MCP App says of itself that a person acts by it.
// Its acts count as done by the client.
func TestAttackAppAsPerson(t *testing.T) {
	t.Parallel()
	by := AppClient(func(*handler.Project) action.Caller { return action.Caller{Person: true, By: "MCP client x"} })
	c := &call{app: by}
	if who := c.caller(&Project{}); who.Person || who.By != "MCP client x" || !who.Detached {
		t.Errorf("the caller is %+v", who)
	}
	c.app = nil
	if who := c.caller(&Project{Project: &handler.Project{}}); !who.Person {
		t.Errorf("the person at the page is %+v", who)
	}
}

// An app asks once, and never for a stream.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	p := New(Options{Now: time.Now})
	by := AppClient(func(*handler.Project) action.Caller { return action.Caller{} })
	for _, path := range []string{"board?stream=1", "board?since=x&stream", "%zz"} {
		if got, err := p.Ask(t.Context(), by, http.MethodGet, path, nil); err == nil {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got, err := p.Ask(t.Context(), by, http.MethodGet, "no/such", nil); err != nil || got.Status != http.StatusNotFound {
		t.Errorf("%+v, %v", got, err)
	}
}
