package resource

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestChainOmitsTheMiddle: a long chain loses links between its first and its newest,
// the oldest of them first, until there are only those two.
func TestChainOmitsTheMiddle(t *testing.T) {
	t.Parallel()
	links := make([]view.ChainLink, 9)
	for i := range links {
		links[i].ThreadID = thread.ID(string(rune('a' + i)))
	}
	c := chain{Chain: view.Chain{Chain: links}}
	for _, want := range []string{"adefghi", "aefghi", "afghi", "aghi", "ahi", "ai"} {
		if !c.omit() {
			t.Fatalf("nothing is left out before %s", want)
		}
		got := ""
		for _, l := range c.Chain.Chain {
			got += string(l.ThreadID)
		}
		if got != want || c.Omitted != len(links)-len(want) {
			t.Errorf("%s with %d left out, want %s", got, c.Omitted, want)
		}
	}
	if c.omit() || links[1].ThreadID != "b" {
		t.Error("the first and the newest stay, and the chain that was read is not changed")
	}
}

// TestSettledCost: a client may keep a cost when nobody spends out of its budget any more.
func TestSettledCost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status thread.State
		budget *view.Budget
		want   bool
	}{
		{thread.Completed, nil, true},
		{thread.Completed, &view.Budget{}, true},
		{thread.Completed, &view.Budget{Active: 1}, false},
		{thread.Running, nil, false},
		{thread.Running, &view.Budget{}, false},
	} {
		if got := (cost{Status: tt.status, Budget: tt.budget}).settled(); got != tt.want {
			t.Errorf("%s, %+v: %t", tt.status, tt.budget, got)
		}
	}
}
