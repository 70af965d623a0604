package control

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestSweepFolders removes what a start has left that was killed before its thread was
// registered, when it is old, and nothing that has a row, words, a holder or a stranger's
// file in it.
func TestSweepFolders(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	s.dieAfter(scheduler.CrashClaimed, "start", root)
	left := s.folder(firstChild)
	make := func(id thread.ID, file string) string {
		s.noError(s.folder(id).Make())
		s.noError(os.WriteFile(s.folder(id).Lock(thread.NewRun()), nil, 0o600))
		if file != "" {
			s.noError(os.WriteFile(filepath.Join(string(s.folder(id)), file), []byte("x"), 0o600))
		}
		return string(s.folder(id))
	}
	kept := []string{
		make("held-1", ""), make("meta-1", "thread.json"), make("words-1", "transcript.jsonl"), make("notes-1", "notes.txt"),
		string(s.folder(root)),
	}
	lock, err := s.c.Threads.Life.Claim(life.Key{Thread: "held-1", Run: thread.NewRun()})
	s.noError(err)
	defer func() { _ = lock.Release() }()

	s.c.Threads.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	if removed, err := s.c.Health.SweepFolders(s.ctx); err != nil || removed != 0 {
		s.Errorf("%d young ones removed, %v", removed, err)
	}
	s.c.Threads.Now = func() time.Time { return time.Now().Add(time.Hour) }
	for _, want := range []int{1, 0} {
		if removed, err := s.c.Health.SweepFolders(s.ctx); err != nil || removed != want {
			s.Errorf("%d removed, want %d, %v", removed, want, err)
		}
	}
	if _, err := os.Stat(string(left)); !os.IsNotExist(err) {
		s.Errorf("the folder of the start is there: %v", err)
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			s.Error(err)
		}
	}
}
