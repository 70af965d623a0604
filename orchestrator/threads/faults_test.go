package threads

import (
	"fmt"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestFaultsOfOthers: what others have done to a thread at the same time is told by a
// code, and is no failure of ours.
func TestFaultsOfOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want tool.Code
	}{
		{thread.ErrSettled, tool.CodeConflict},
		{&thread.DeletedError{ID: "a-1", At: time.Now()}, tool.CodeNotFound},
		{thread.ErrNotFound, tool.CodeNotFound},
		{store.ErrParentGone, tool.CodeParentGone},
	} {
		if f := Fault(fmt.Errorf("link a-1 to a-2: %w", test.err)); f.Code != test.want || f.Message == "" {
			t.Errorf("%v: %+v, want the code %s", test.err, f, test.want)
		}
	}
}
