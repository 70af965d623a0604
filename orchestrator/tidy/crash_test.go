package tidy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// process is another process that does a deed to a thread, and dies at a crash point.
func (s *scene) process(id thread.ID, point thread.Crashpoint, deed string) *exec.Cmd {
	s.Helper()
	executable, err := os.Executable()
	s.noError(err)
	return exec.CommandContext(s.ctx, executable, "actor", s.project, string(id), string(point), deed)
}

// dieAt has another process die at a crash point while it does a deed.
func (s *scene) dieAt(id thread.ID, point thread.Crashpoint, deed string) {
	s.Helper()
	out, err := s.process(id, point, deed).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.Fatalf("the process that was to die at %s ended with %v: %s", point, err, out)
	}
}

// TestKilledDeleter kills a process at each crash point of a deletion, each time it comes
// there. Nobody sees the threads any more, no sum has changed, and the next one to come
// removes the rest: the next deletion, the sweep of a server, or somebody who deletes the
// same again.
func TestKilledDeleter(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for i, point := range deleterSteps(t) {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.running("root", "")
			top := s.running("top", root)
			below := s.ended("below", top)
			s.end(top, thread.Completed, 7)
			other := s.ended("other", "")
			s.dieAt(top, point, "delete")

			rows, _, err := s.store.List(s.ctx, store.Filter{})
			s.noError(err)
			var ids []thread.ID
			for _, rec := range rows {
				ids = append(ids, rec.ThreadID)
			}
			if !same(ids, []thread.ID{root, other}) {
				t.Errorf("listed after the crash: %v", ids)
			}
			switch i % 3 {
			case 0:
				_, done, err := s.t.Sweep(s.ctx)
				s.noError(err)
				if !done {
					t.Error("the sweep was not done")
				}
				s.wantWhole(other)
			case 1:
				s.delete(other)
				s.wantGone(other)
			case 2:
				if told := s.delete(top); told.DeletedAt == "" {
					t.Errorf("told %+v", told)
				}
			}
			s.wantGone(top, below)
			s.wantSpent(root, 14, 21)
		})
	}
}

// deleterSteps are the steps of the deletion of two threads, as [actor] reads them.
func deleterSteps(t *testing.T) (steps []thread.Crashpoint) {
	t.Helper()
	s := newScene(t)
	top := s.running("top", "")
	s.ended("below", top)
	s.end(top, thread.Completed, 7)
	came := map[thread.Crashpoint]int{}
	s.t.Threads.Crashpoints = func(at thread.Crashpoint) {
		came[at]++
		steps = append(steps, thread.Crashpoint(fmt.Sprintf("%s#%d", at, came[at])))
	}
	s.delete(top)
	for _, listed := range tidy.Crashpoints() {
		if came[listed] == 0 {
			t.Errorf("nobody comes to %s", listed)
		}
	}
	if want := 2 * len(s.t.Belongings); came[tidy.CrashBelongings] != want || came[tidy.CrashFolder] != 2 || len(came) != len(tidy.Crashpoints()) {
		t.Errorf("came to %v", steps)
	}
	return steps
}

// never is no crash point.
const never thread.Crashpoint = ""

// TestLostAfterCrash loses both databases after a crash in the middle of a deletion, and
// after the end of one. A deleted thread does not come back, and what it has spent still
// counts. A folder that comes back from a copy is a stray for [health].
func TestLostAfterCrash(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, point := range []thread.Crashpoint{tidy.CrashRemembered, tidy.CrashKnowledge, never} {
		t.Run("at "+string(point), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.running("root", "")
			top := s.ended("top", root)
			s.end(root, thread.Completed, 1)
			copied := t.TempDir()
			s.noError(os.CopyFS(copied, os.DirFS(s.folder(top))))
			if point != never {
				s.dieAt(top, point, "delete")
			} else {
				s.delete(top)
				s.noError(os.CopyFS(s.folder(top), os.DirFS(copied)))
			}
			s.noError(s.t.Threads.Close())
			for _, path := range sqlite.Files(placetest.Dir(s.project)) {
				for _, ending := range []string{"", "-wal", "-shm"} {
					_ = os.Remove(path + ending) // the last to close removes two of them
				}
			}
			again := openScene(t, s.project)
			rebuilt, err := (&recovery.Rebuilder{Records: again.t.Threads.Records, Store: again.store, Life: again.t.Threads.Life, Host: "host"}).Run(again.ctx)
			again.noError(err)
			if rebuilt.Threads != 1 {
				t.Errorf("rebuilt %+v", rebuilt)
			}
			again.wantSpent(root, 8, 8)
			if _, _, err := again.t.Sweep(again.ctx); err != nil {
				t.Error(err)
			}
			if _, err := again.store.Get(again.ctx, top); err == nil || !strings.Contains(err.Error(), "was deleted") {
				t.Errorf("the row: %v", err)
			}
			if _, err := os.Stat(s.folder(top)); (err == nil) != (point == never) {
				t.Errorf("its folder, which a person has put back or nobody has: %v", err)
			}
		})
	}
}

// TestAttackDeleteTwice: four processes delete the same thread at once, and others below
// and beside it. Each of them is told that it is gone, and nothing else is.
func TestAttackDeleteTwice(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.running("root", "")
	top := s.running("top", root)
	below := s.ended("below", top)
	s.end(top, thread.Completed, 7)
	beside := s.ended("beside", root)
	kept := s.ended("kept", root)
	var group sync.WaitGroup
	for _, id := range []thread.ID{top, top, below, beside} {
		group.Go(func() {
			if out, err := s.process(id, never, "delete").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "true") {
				t.Errorf("delete %s: %v, %s", id, err, out)
			}
		})
	}
	group.Wait()
	s.wantGone(top, below, beside)
	s.wantWhole(kept)
	s.wantSpent(root, 28, 28)
	list, err := s.store.Deletions(s.ctx, store.DeletionFilter{})
	s.noError(err)
	if len(list) != 3 || slices.ContainsFunc(list, func(d store.Deletion) bool { return d.Open }) {
		t.Errorf("deletions %+v", list)
	}
}
