package workspace

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestLockMadeAtOnce: whoever makes the folder of a workspace while another removes it comes to
// have it.
func TestLockMadeAtOnce(t *testing.T) {
	t.Parallel()
	s := &space{dir: filepath.Join(t.TempDir(), "w"), is: thread.Workspace{Name: "w"}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				unlock, err := s.lockMade(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.drop(); err != nil {
					t.Error(err)
				}
				unlock()
			}
		})
	}
	all.Wait()
}
