package recovery

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestLinkOfTwoResumes: of two threads that were to resume a third when the
// registry was lost, the one that runs continues it, wherever it is found, so
// that the other cannot come to run beside it.
func TestLinkOfTwoResumes(t *testing.T) {
	t.Parallel()
	row := func(id, before thread.ID, state thread.State, via thread.Via) taken {
		rec := thread.Record{ThreadID: id, ContinuationOf: before, Status: state}
		return taken{Restored: store.Restored{Record: rec, Budget: &store.Budget{ThreadID: id, MaxSpend: 5, Own: 7}}, via: via}
	}
	ended := row("ended", "", thread.Completed, "")
	begun, waits := row("begun", "ended", thread.Running, thread.ViaResume), row("waits", "ended", thread.Created, thread.ViaResume)
	for _, found := range [][]taken{{begun, ended, waits}, {waits, ended, begun}, {waits, begun, ended}} {
		link(found)
		for _, f := range found {
			want := map[thread.ID]thread.ID{"ended": "begun"}[f.Record.ThreadID]
			if f.Record.ContinuationThreadID != want || f.Budget.MaxSpend != 5 {
				t.Errorf("%s is continued by %q, with %d", f.Record.ThreadID, f.Record.ContinuationThreadID, f.Budget.MaxSpend)
			}
		}
	}
}
