package control

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestEveryCrashpoint comes to every crash point that is listed, so that tests which
// kill at each of them miss none.
func TestEveryCrashpoint(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 1)
	var mu sync.Mutex
	seen := map[thread.Crashpoint]bool{}
	reached := func(at thread.Crashpoint) {
		mu.Lock()
		defer mu.Unlock()
		seen[at] = true
	}
	s.c.Threads.Crashpoints, s.c.Threads.Finisher.Crashpoints, s.c.Threads.Sweeper.Crashpoints = reached, reached, reached
	root := s.start("idle", "")
	first, second := s.begin("work", root).ThreadID, s.begin("work", root).ThreadID
	s.setSlots(2)
	s.dieAfter(scheduler.CrashAdmitted, "dispatch", "") // first has a slot and no process
	s.c.Queue.DispatchAndLog(s.ctx, true, nil)
	s.order(first, "claim", "say hello")
	s.setSlots(3)
	s.noError(s.c.Queue.Dispatch(s.ctx))
	s.order(second, "claim", "say hello")
	s.noError(syscall.Kill(s.puppet(second).pid, syscall.SIGKILL))
	s.wait(s.c, WaitAll, second)
	_, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: second, Message: "go on"})
	s.noError(err)
	_, err = s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: second})
	s.noError(err)
	successor, err := s.c.Continue.MakeSuccessor(s.ctx, handoff.Request{ThreadID: first})
	s.noError(err)
	successor.GiveUp(s.ctx, thread.ErrCancelled)
	_, err = s.c.Stop.Cancel(s.ctx, root)
	s.noError(err)
	s.write("directives/item.md", fmt.Sprintf(itemDirective, ""))
	_, err = s.c.Stop.Cancel(s.ctx, s.begunSet(ofItems(numbered(0, 1), 1)))
	s.noError(err)
	listed := slices.Concat(Crashpoints(), recovery.Crashpoints(), finish.Crashpoints(), finish.EntryCrashpoints())
	unseen := func() []thread.Crashpoint {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(listed), func(at thread.Crashpoint) bool { return seen[at] })
	}
	// A row wakes who waits for it before the last steps are done.
	for len(unseen()) > 0 && s.ctx.Err() == nil {
		runtime.Gosched()
	}
	if left := unseen(); len(left) > 0 {
		t.Errorf("nobody comes to %v", left)
	}
	mu.Lock()
	defer mu.Unlock()
	for at := range seen {
		if !slices.Contains(listed, at) {
			t.Errorf("%s is not listed", at)
		}
	}
}

// TestKilledDispatcher kills servers while they start a thread in the queue, at each
// step: it is started all the same, once, and before those behind it.
func TestKilledDispatcher(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{scheduler.CrashTaken, scheduler.CrashAdmitted, scheduler.CrashLaunched, scheduler.CrashRecorded} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := narrow(t, 1)
			running := s.start("idle", "")
			first, second := s.begin("work", "").ThreadID, s.begin("work", "").ThreadID
			s.setSlots(2)
			s.dieAfter(at, "dispatch", "")
			s.c.Queue.DispatchAndLog(s.ctx, true, nil)
			s.order(first, "claim")
			s.wantLoad(2, 1)
			if got := s.row(first); got.PID != s.puppet(first).pid {
				s.Errorf("the row names process %d, %d has come", got.PID, s.puppet(first).pid)
			}
			s.order(first, "complete")
			s.order(second, "claim", "complete")
			s.order(running, "complete")
			s.wantLoad(0, 0)
		})
	}
}

// TestManyDispatchers has several servers fight for a long line, some of which
// die at it: every thread runs, and completes.
func TestManyDispatchers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const threads, slots, servers = 12, 3, 3
	s := narrow(t, slots)
	s.c.Queue.Launcher.(*spawn.Launcher).Environ = func([]string) ([]string, []string) { return nil, nil } // each completes at once
	blocker := s.controller()
	running := s.startIn(blocker, "idle")
	s.setSlots(1)
	var ids []thread.ID
	for range threads {
		ids = append(ids, s.begin("work", "").ThreadID)
	}
	s.setSlots(slots)
	for _, at := range []thread.Crashpoint{scheduler.CrashTaken, scheduler.CrashAdmitted} {
		s.dieAfter(at, "dispatch", "")
	}
	var group sync.WaitGroup
	for range servers {
		c := s.controller()
		c.Queue.Launcher.(*spawn.Launcher).Environ = func([]string) ([]string, []string) { return nil, nil }
		group.Go(func() {
			if r := s.wait(c, WaitAll, ids...); !r.Success {
				s.Errorf("waited for %+v", r)
			}
		})
	}
	group.Wait()
	s.order(running, "complete")
	s.wantLoad(0, 0)
}

// startIn starts a root in another server, and lets it claim its row.
func (s *scene) startIn(c *Controller, directive string) thread.ID {
	s.Helper()
	started, err := c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: directive})
	s.noError(err)
	s.order(started.ThreadID, "claim")
	return started.ThreadID
}

// TestKilledStarter kills a server whose thread has a slot already: nobody has
// told the caller, and the thread runs when somebody moves the queue.
func TestKilledStarter(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	s.dieAfter(scheduler.CrashQueued, "start", root)
	report, err := s.c.Threads.Sweep(s.ctx)
	if err != nil || !slices.Equal(report.Returned, []thread.ID{firstChild}) || report.Settled() != 0 {
		s.Errorf("swept %+v, %v", report, err)
	}
	s.wantLoad(1, 1)
	s.noError(s.c.Queue.Dispatch(s.ctx))
	s.order(firstChild, "claim", "complete")
	s.wantTree(root, store.TreeSpend{Threads: 2, Active: 1})
}

// TestKilledSettler kills servers while they settle a dead thread with a tool and
// a child, at each step. The next one comes to the same end.
func TestKilledSettler(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	points := slices.Concat(recovery.Crashpoints(), finish.Crashpoints(), Crashpoints()[slices.Index(Crashpoints(), stop.CrashIntended):])
	for _, at := range points {
		if at == "settle.returned" { // see TestKilledStarter
			continue
		}
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			dead := s.start("idle", root)
			child := s.start("work", dead)
			s.order(dead, "spend 5")
			tool := s.tool(dead, "session", process.Mark(s.project, string(dead))...)
			s.c.Threads.LeaveChildren()
			s.noError(syscall.Kill(s.puppet(dead).pid, syscall.SIGKILL))
			<-s.puppet(dead).gone
			s.dieAfter(at, "sweep", "")
			_, err := s.c.Threads.Sweep(s.ctx)
			s.noError(err)
			s.wait(s.c, WaitAll, dead, child)
			s.wantState(thread.Error, dead)
			s.wantState(thread.Cancelled, child)
			s.wantTree(root, store.TreeSpend{Actual: 5, Threads: 3, Active: 1})
			meta, err := s.folder(dead).ReadMeta(s.c.Threads.Records.Seal())
			if err != nil || meta.Status != thread.Error {
				s.Errorf("thread.json says %s, %v", meta.Status, err)
			}
			if !process.Gone(tool) {
				s.Error("its tool goes on")
				_ = syscall.Kill(tool, syscall.SIGKILL)
			}
			s.order(root, "complete")
		})
	}
}

// TestKilledCanceller kills servers while they cancel a tree, one thread of which
// ignores signals and one of which is queued. The intent holds: the next
// cancel, or whoever looks, sees the tree ended.
func TestKilledCanceller(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{stop.CrashIntended, stop.CrashInterrupted, stop.CrashUnqueued, stop.CrashLevel} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := narrow(t, 3)
			root := s.start("idle", "")
			middle := s.start("idle", root)
			leaf := s.start("work", middle)
			queued := s.begin("work", root).ThreadID
			s.order(leaf, "stubborn")
			s.dieAfter(at, "cancel", root)
			if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: root}); code(err) != "parent_gone" {
				s.Errorf("a child was added to a cancelled tree: %v", err)
			}
			stopped, err := s.c.Stop.Cancel(s.ctx, root)
			if err != nil || !stopped.Success || len(stopped.Receipts) != 4 {
				s.Errorf("stopped %+v, %v", stopped, err)
			}
			s.wantState(thread.Cancelled, root, middle, leaf, queued)
			s.wantTree(root, store.TreeSpend{Threads: 4})
			s.wantLoad(0, 0)
		})
	}
}
