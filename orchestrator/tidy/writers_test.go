package tidy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// wantNothing holds that no file of any thread is left in the project, whatever its name.
func (s *scene) wantNothing() {
	s.Helper()
	state := placetest.Dir(s.project)
	for _, dir := range []string{filepath.Join(s.project, ".ai", "knowledge"), state} {
		s.noError(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && (dir != state || filepath.Dir(path) != state) && !d.IsDir() {
				s.Errorf("%s is left", path)
			}
			return err
		}))
	}
}

// TestKilledWriter kills a process that writes a knowledge entry of its thread. When the
// thread was settled and deleted nothing of it is left.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	for deed, settled := range map[string]bool{"end": true, "sum up": false} {
		t.Run(deed, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.running("work", "")
			s.dieAt(id, finish.CrashDrafted, deed)
			drafts, err := filepath.Glob(filepath.Join(filepath.Dir(s.rendering(id)), ".*"))
			s.noError(err)
			if len(drafts) != 1 {
				t.Fatalf("left by the killed process are %q", drafts)
			}
			s.now = time.Now().Add(2 * time.Hour) // another machine ran it, and nothing is heard of that
			rec, err := s.t.Threads.Examine(s.ctx, id)
			s.noError(err)
			if !rec.Status.Terminal() {
				t.Fatalf("it is %s", rec.Status)
			}
			if _, err := os.Lstat(drafts[0]); os.IsNotExist(err) != settled {
				t.Errorf("the draft after the thread was settled: %v", err)
			}
			s.delete(id)
			s.wantGone(id)
			s.wantNothing()
		})
	}
}
