package loop

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestAttackRowOfOlderTime: the registry is put back from before a thread ran, so that the thread is queued again. Its process finds in the transcript how it ended, asks no model and ends it in the same way.
func TestAttackRowOfOlderTime(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {text: Done.}\n")
	first := h.run(job{})
	asked := len(h.asked())
	db, err := sql.Open("sqlite", filepath.Join(h.home().Dir, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE threads SET status = 'created', completed_at = NULL, result = NULL, spend = 0, writes = writes + 1`)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRun(h.deps(first.ThreadID))
	again, err := r.toEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Transcript.Close(); err != nil {
		t.Error(err)
	}
	if again.Status != thread.Completed || again.Outcome.Result != first.Outcome.Result || again.Cost != first.Cost || len(h.asked()) != asked {
		t.Errorf("it ended as %+v, with %d requests more", again, len(h.asked())-asked)
	}
}
