package control

import (
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// freeze suspends the process of a thread.
func (s *scene) freeze(id thread.ID) {
	s.Helper()
	pid := s.puppet(id).pid
	s.noError(syscall.Kill(pid, syscall.SIGSTOP))
	for !process.Stopped(pid) {
		s.noError(s.ctx.Err())
		runtime.Gosched()
	}
}

// TestAttackStoppedThread: the process of a thread is suspended while it holds the
// registry. Lists and status are answered, starts are refused with its number, and a
// cancel or kill of it ends it and frees the registry.
func TestAttackStoppedThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, ladder := range map[string]life.Ladder{
		"cancel": {Soft: time.Millisecond, Term: time.Millisecond}, "kill": {Term: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id, other := s.start("idle", ""), s.start("idle", "")
			s.order(id, "hold")
			s.freeze(id)

			if list, err := s.c.View.List(s.ctx, unfinished); err != nil || list.Count != 2 {
				s.Errorf("%d active, %v", list.Count, err)
			}
			if status, err := s.c.View.Status(s.ctx, id); err != nil || status.Status != thread.Running {
				s.Errorf("status %+v, %v", status, err)
			}
			_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle"})
			busy, ok := errors.AsType[*thread.BusyError](err)
			if !ok || busy.Holder.PID != s.puppet(id).pid || !busy.Holder.Stopped {
				s.Errorf("start: %v", err)
			}
			stopped, err := s.c.Stop.Stop(s.ctx, ladder, id)
			s.noError(err)
			// Its death may be noticed before the cancel can be put on record.
			if r := stopped.Receipts[0]; !stopped.Success || !r.Status.Terminal() || r.How != string(life.Killed) {
				s.Errorf("stopped %+v", stopped)
			}
			s.wantState(thread.Running, other)
			s.start("idle", "")
		})
	}
}

// TestStopOfEndedProcess: a process is suspended after the end of its thread, and
// keeps its locks. A cancel or kill of the thread ends it.
func TestStopOfEndedProcess(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, orders := range map[string][]string{"at its end": {"end"}, "with the registry": {"end", "hold"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.start("idle", "")
			for _, order := range orders {
				s.order(id, order)
			}
			s.freeze(id)
			s.wantState(thread.Completed, id)
			stopped, err := s.c.Stop.Stop(s.ctx, life.Ladder{Term: time.Millisecond}, id)
			s.noError(err)
			if r := stopped.Receipts[0]; !stopped.Success || r.Status != thread.Completed || r.How == "already_ended" || !process.Gone(s.puppet(id).pid) {
				s.Errorf("stopped %+v", stopped)
			}
			s.start("idle", "")
		})
	}
}

// TestSteeredBesideSuspended: a caller that waits for a suspended thread is told of a message,
// too.
func TestSteeredBesideSuspended(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	parent := s.start("idle", "")
	id := s.start("idle", parent)
	s.freeze(id)
	_, err := s.steer(parent, "Look elsewhere.")
	s.noError(err)
	got, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{id}, Timeout: giveUp, Parent: parent})
	s.noError(err)
	if !strings.HasPrefix(got.Next, interruptedNext) || !strings.Contains(got.Next, "kill_thread") {
		t.Errorf("told %q", got.Next)
	}
	_, err = s.c.Stop.Stop(s.ctx, life.Ladder{Term: time.Millisecond}, id)
	s.noError(err)
}

// TestWaitForSuspended: the process of a child is suspended while its parent waits. The
// parent is told once, with what it can do; a wait for a time of its own lasts that
// time; when the child is killed, the parent is told that.
func TestWaitForSuspended(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	parent := s.start("idle", "")
	id := s.start("idle", parent)
	s.freeze(id)
	wait := func(timeout time.Duration) view.WaitResult {
		t.Helper()
		got, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{id}, Timeout: timeout, Parent: parent})
		s.noError(err)
		return got
	}
	told := wait(giveUp)
	if len(told.Suspended) != 1 || told.Suspended[id] != s.puppet(id).pid || !strings.Contains(told.Next, "kill_thread") || len(told.Pending) != 1 {
		t.Errorf("told %+v", told)
	}
	ended := make(chan view.WaitResult)
	go func() { ended <- wait(giveUp) }()
	_, err := s.c.Stop.Stop(s.ctx, life.Ladder{Term: time.Millisecond}, id)
	s.noError(err)
	if got := <-ended; len(got.Pending) > 0 || !got.Results[id].Status.Terminal() || len(got.Suspended) > 0 {
		t.Errorf("after the kill: %+v", got)
	}
}

// TestKillBesideStoppedHolder: a kill ends a thread although a process that is none of
// it holds the registry suspended; the receipt says that it is not on record yet. A
// cancel signals nothing then.
func TestKillBesideStoppedHolder(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	holder, id := s.start("idle", ""), s.start("idle", "")
	s.order(holder, "hold")
	s.freeze(holder)

	if stopped, err := s.c.Stop.Cancel(s.ctx, id); err == nil {
		s.Errorf("cancelled %+v", stopped)
	}
	s.order(id, "ping")
	s.order(id, "stubborn")
	stopped, err := s.c.Stop.Stop(s.ctx, life.Ladder{Term: time.Millisecond}, id)
	s.noError(err)
	r := stopped.Receipts[0]
	if stopped.Success || r.How != string(life.Killed) || r.Error == "" || !process.Gone(s.puppet(id).pid) {
		s.Errorf("receipt %+v", r)
	}
	s.noError(syscall.Kill(s.puppet(holder).pid, syscall.SIGKILL))
	s.wait(s.c, WaitAll, id, holder)
	s.wantState(thread.Error, id)
}

// TestKillOfUnnamedProcess: a thread's process was suspended before it claimed its row,
// and its starter died before it recorded the process. A kill finds it all the same.
func TestKillOfUnnamedProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("processes are found by their arguments on Linux alone")
	}
	s := newScene(t)
	started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle"})
	s.noError(err)
	id := started.ThreadID
	s.freeze(id)
	s.noError(storetest.As(s.c.Threads.Store).SetProcess(s.ctx, id, thread.Process{}))
	stopped, err := s.c.Stop.Stop(s.ctx, life.Ladder{Term: giveUp}, id)
	s.noError(err)
	if r := stopped.Receipts[0]; !stopped.Success || r.Status != thread.Cancelled || r.How != string(life.Terminated) {
		s.Errorf("receipt %+v", r)
	}
}
