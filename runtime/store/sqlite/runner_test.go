package sqlite

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestBudgetOfItsRun: a budget is made for the run that its thread was registered with,
// which then writes to it at once; one without a row is its first writer's.
func TestBudgetOfItsRun(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), unpolled)
	registered := func(parent thread.ID) (thread.ID, thread.Run) {
		n := newThread("d", parent)
		n.Run = thread.NewRun()
		return mustRegister(t, s, n), n.Run
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root, ofRoot := registered("")
	_, err := s.Runner(root, ofRoot).Apply(t.Context(), store.Claimed(root, thread.Process{PID: 1, Host: "h"}, testTime))
	must(err)
	child, ofChild := registered(root)
	must(s.OpenRoot(t.Context(), root, 100, testTime))
	must(s.Reserve(t.Context(), child, root, 40, testTime))
	must(s.OpenRoot(t.Context(), "d-unknown", 100, testTime))
	for id, want := range map[thread.ID]thread.Run{root: ofRoot, child: ofChild, "d-unknown": ""} {
		var run thread.Run
		must(s.ledger.Read(t.Context(), func(ctx context.Context, db *sql.DB) error {
			return db.QueryRowContext(ctx, "SELECT run FROM budgets WHERE thread_id = ?", id).Scan(&run)
		}))
		if run != want {
			t.Errorf("the budget of %s is that of run %q, want %q", id, run, want)
		}
	}
}
