package control

import (
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// TestRunsAreLetGo: the maker of a run says when its life is claimed, or will not be: when a start
// is refused or queued, when the queue has nobody for a slot, and when a dead thread was settled.
func TestRunsAreLetGo(t *testing.T) {
	t.Parallel()
	s := narrow(t, 1)
	var made, open atomic.Int64
	newRun := func() (thread.Run, func()) {
		made.Add(1)
		open.Add(1)
		return thread.NewRun(), func() { open.Add(-1) }
	}
	s.c.Threads.NewRun, s.c.Threads.Sweeper.NewRun = newRun, newRun
	let := func(what string) {
		t.Helper()
		if made.Swap(0) == 0 || open.Load() != 0 {
			t.Errorf("%s: %d runs are kept", what, open.Load())
		}
	}
	id := s.start("idle", "")
	let("a start")
	s.begin("idle", "")
	let("a start that is queued")
	if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle", Parent: "no/such"}); err == nil {
		t.Error("below nobody a thread was started")
	}
	s.setSlots(5)
	s.noError(s.c.Queue.Dispatch(s.ctx))
	let("a pass over the queue")
	s.c.Threads.LeaveChildren() // nobody else settles it
	dead := s.row(id)
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
	<-s.puppet(id).gone
	if _, err := s.c.Threads.Sweeper.Examine(s.ctx, dead); err != nil {
		t.Error(err)
	}
	let("a dead thread")
}
