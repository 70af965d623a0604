package control

import (
	"os"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestWaitForUnsettled: one of several threads is dead and cannot be settled, as on a
// full disk. A wait gives each its state, and that one why.
func TestWaitForUnsettled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	done, dead := s.start("idle", ""), s.start("idle", "")
	s.order(done, "complete")
	s.c.Threads.LeaveChildren() // it would settle the thread itself
	pid := s.puppet(dead).pid
	s.noError(syscall.Kill(pid, syscall.SIGKILL))
	<-process.Watch(s.ctx, pid)
	s.noError(os.RemoveAll(s.folder(dead).Transcript()))
	s.noError(os.Mkdir(s.folder(dead).Transcript(), 0o700))

	r := s.wait(s.c, WaitAll, done, dead)
	if r.Success || r.Results[done].Status != thread.Completed || r.Results[done].Error != "" {
		s.Errorf("the one that has ended: %+v", r.Results[done])
	}
	got := r.Results[dead]
	if got.Status != thread.Running || got.Problem == nil || got.Error == "" || len(r.Pending) != 1 || r.Pending[0] != dead {
		s.Errorf("the dead one: %+v, pending %v", got, r.Pending)
	}
	s.noError(os.Remove(s.folder(dead).Transcript()))
	if r := s.wait(s.c, WaitAll, done, dead); r.Results[dead].Status != thread.Error || len(r.Pending) != 0 {
		s.Errorf("after that is mended: %+v", r)
	}
}
