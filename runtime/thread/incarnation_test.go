package thread_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestIncarnation: the runs of a worker name it and differ, and what is no incarnation
// makes no run that could be read as anything else.
func TestIncarnation(t *testing.T) {
	t.Parallel()
	worker := thread.NewIncarnation()
	one, other := worker.NewRun(), worker.NewRun()
	if one == other || !one.NamesLife() || one.Incarnation() != worker || other.Incarnation() != worker {
		t.Errorf("runs %q and %q of %q", one, other, worker)
	}
	for _, none := range []thread.Incarnation{"", "SHORT", "../../../..", "ABCDEFGHIJK"} {
		if run := none.NewRun(); !run.NamesLife() || run.Incarnation() == worker {
			t.Errorf("%q: %q", none, run)
		}
	}
	for _, older := range []thread.Run{"", "OLDER", "r", "../../r"} {
		if got := older.Incarnation(); got != "" {
			t.Errorf("%q is of %q", older, got)
		}
	}
}
