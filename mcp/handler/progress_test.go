package handler

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
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
		if got := progressOf(tt.now); got.Progress != tt.done || got.Total != tt.total || got.Message == "" {
			t.Errorf("%+v is told as %+v", tt.now, got)
		}
	}
}
