package handler

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// A client is told how far a wait is, of how much: threads of several, turns of one.
func TestProgressHasATotal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		now         control.Progress
		done, total float64
	}{
		{control.Progress{Done: 2, Total: 5, Turns: 40, TurnLimit: 8}, 2, 5},
		{control.Progress{Total: 1, Turns: 3, TurnLimit: 8}, 3, 8},
		{control.Progress{Total: 1, Turns: 3}, 3, 0}, // not known
	} {
		if got := progressOfWait(tt.now); got.Progress != tt.done || got.Total != tt.total || got.Message == "" {
			t.Errorf("%+v is told as %+v", tt.now, got)
		}
	}
}

// A client is told how far a deletion is.
func TestProgressOfTidying(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	n.end(n.start("greet", 1), thread.Completed)
	c := connectTo(t, n.p)
	for _, tt := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"older_than": "0s", "dry_run": true}, ""},
		{map[string]any{"older_than": "0s", "confirm": true}, "deleted 1 of 1 threads"},
	} {
		p := c.CallAsync("cleanup_threads", tt.args)
		told, _ := p.ReadProgress()
		if !strings.HasPrefix(told.Message, tt.want) || tt.want == "" && told.Message != "" {
			t.Errorf("%v tells %q, want %q", tt.args, told.Message, tt.want)
		}
		if r := p.Result(); r.IsError {
			t.Errorf("%v: %s", tt.args, r.JSON)
		}
	}
}
