package changeset

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
)

// TestNothingLeft: what is said of a thread without a workspace is what can be done: one that
// has a conversation is resumed, one that never began is started again.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rec   thread.Record
		meta  thread.Meta
		err   error
		says  string // empty: it is no answer
		never string
	}{
		"killed while it was made": {rec: thread.Record{Status: thread.Error}, err: fs.ErrNotExist, says: "rye_execute", never: "resume_thread"},
		"a copy that rests": {
			rec: thread.Record{Status: thread.Completed}, meta: thread.Meta{ForkedFrom: &thread.Fork{}}, err: fs.ErrNotExist, says: "resume_thread", never: "rye_execute",
		},
		"a successor": {rec: thread.Record{Status: thread.Error, ContinuationOf: "t-1"}, err: fs.ErrNotExist, says: "resume_thread", never: "rye_execute"},
		"applied": {
			rec: thread.Record{Status: thread.Completed}, err: &workspace.GoneError{AppliedAt: time.Unix(1, 0)}, says: "was applied at", never: "resume_thread",
		},
		"it goes on": {rec: thread.Record{Status: thread.Running}, err: fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.meta.Workspace = &thread.Workspace{}
			gone, is := nothingLeft(c.rec, c.meta, c.err)
			if is != (c.says != "") || is && (!strings.Contains(gone.Error(), c.says) || strings.Contains(gone.Error(), c.never)) {
				t.Errorf("%v, %v", gone, is)
			}
		})
	}
}
