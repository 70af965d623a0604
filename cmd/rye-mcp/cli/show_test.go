package cli

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
)

// TestBudgetText: nothing is left to a thread that has ended, and it starts nothing: what
// counts then is what was spent.
func TestBudgetText(t *testing.T) {
	t.Parallel()
	b := view.Budget{Max: 500_000, Actual: 20_000, Reserved: 100_000, Remaining: 380_000, TreeSpend: 30_000, CanSpawn: true}
	for _, tt := range []struct {
		name string
		tell func() string
		want string
	}{
		{"works", func() string { return budgetText(b, false) }, "$0.3800 of $0.5000 left, $0.1000 held by children; it may start a child"},
		{"may start none", func() string {
			b := b
			b.CanSpawn, b.WhyNot = false, "it has been asked to stop"
			return budgetText(b, false)
		}, "$0.3800 of $0.5000 left, $0.1000 held by children; it may start no child: it has been asked to stop"},
		{"ended", func() string { return budgetText(b, true) }, "$0.0300 of $0.5000 spent"},
		{"ended before what it started", func() string {
			b := b
			b.Active = 1
			return budgetText(b, true)
		}, "$0.0300 of $0.5000 spent; 1 thread below it still at work"},
	} {
		if got := tt.tell(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
