package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// wantReceipts compares receipts with "id state how", parents first.
func (s *scene) wantReceipts(got stop.Stopped, success bool, want ...string) {
	s.Helper()
	var receipts []string
	for _, r := range got.Receipts {
		receipts = append(receipts, fmt.Sprintf("%s %s %s", r.ThreadID, r.Status, r.How))
		if r.Error != "" {
			s.Errorf("%s: %s", r.ThreadID, r.Error)
		}
	}
	if fmt.Sprint(receipts) != fmt.Sprint(want) || got.Success != success {
		s.Errorf("success %t, receipts\n%q, want\n%q", got.Success, receipts, want)
	}
}

// TestCancelTree cancels three levels, one thread of which has ended before and
// one of which ignores every signal it can.
func TestCancelTree(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	ended := s.start("idle", root)
	below := s.start("work", ended)
	middle := s.start("idle", root)
	leaf := s.start("work", middle)
	s.order(ended, "complete")
	s.order(leaf, "spend 9", "stubborn")

	stopped, err := s.c.Stop.Cancel(s.ctx, root)
	s.noError(err)
	for i, r := range stopped.Receipts {
		// A thread may find the cancel on record before it is interrupted.
		if r.Status == thread.Cancelled && r.How == "already_ended" {
			stopped.Receipts[i].How = string(life.Interrupted)
		}
	}
	s.wantReceipts(stopped, true,
		string(root)+" cancelled interrupted",
		string(ended)+" completed already_ended", string(middle)+" cancelled interrupted",
		string(below)+" cancelled interrupted", string(leaf)+" cancelled killed")
	s.wantTree(root, store.TreeSpend{Actual: 9, Threads: 5})

	again, err := s.c.Stop.Cancel(s.ctx, root)
	s.noError(err)
	for _, r := range again.Receipts {
		if r.How != "already_ended" {
			s.Errorf("stopped again: %+v", r)
		}
	}
	if len(again.Receipts) != len(stopped.Receipts) {
		s.Errorf("receipts %+v", again.Receipts)
	}
}

// TestCancelAtOnce has two servers cancel the same thread, with a caller that
// has gone away: the intent holds.
func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	gone, cancel := context.WithCancel(s.ctx)
	var group sync.WaitGroup
	for _, c := range []*Controller{s.c, s.controller()} {
		rec, err := c.Threads.Look(s.ctx, root)
		s.noError(err)
		group.Go(func() {
			ladder, _ := c.Settings.Begin().Patience()
			receipts, err := c.Stop.Trees(context.WithoutCancel(gone), []thread.ID{rec.ThreadID}, ladder)
			if err != nil || len(receipts) != 2 {
				s.Errorf("receipts %+v, %v", receipts, err)
			}
		})
	}
	cancel()
	group.Wait()
	s.wantState(thread.Cancelled, root, child)
	s.wantTree(root, store.TreeSpend{Threads: 2})
}

// TestStopTooLate: a thread whose work is complete when it is told to stop has completed, and
// nothing that is told of it says that it was stopped.
func TestStopTooLate(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, stopIt := range []func(*stop.Stopper, context.Context, ...thread.ID) (stop.Stopped, error){(*stop.Stopper).Cancel, (*stop.Stopper).Kill} {
		id := s.start("idle", "")
		s.order(id, "work")
		stopped, err := stopIt(s.c.Stop.By("somebody"), s.ctx, id)
		s.noError(err)
		s.wantReceipts(stopped, true, string(id)+" completed already_ended")
		const want = "a cancel by somebody came too late: the work was complete"
		status, err := s.c.View.Status(s.ctx, id)
		s.noError(err)
		if !slices.Contains(status.Warnings, want) {
			s.Errorf("its status warns of %q", status.Warnings)
		}
		if got := s.wait(s.c, WaitAll, id).Results[id]; got.Status != thread.Completed || !slices.Contains(got.Warnings, want) {
			s.Errorf("its result: %+v", got)
		}
	}
}

// TestKill terminates a thread that would have stopped softly, and one that is
// stopped by a signal and can only be killed.
func TestKill(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	polite := s.start("idle", "")
	stopped, err := s.c.Stop.Kill(s.ctx, polite)
	s.noError(err)
	s.wantReceipts(stopped, true, string(polite)+" cancelled terminated")

	frozen := s.start("idle", "")
	s.freeze(frozen)
	if status, err := s.c.View.Status(s.ctx, frozen); err != nil || status.Status != thread.Running {
		s.Errorf("a stopped process counts as %s, %v", status.Status, err)
	}
	receipts, err := s.c.Stop.Trees(s.ctx, []thread.ID{frozen}, life.Ladder{Term: time.Millisecond})
	s.noError(err)
	s.wantReceipts(stop.Stopped{Receipts: receipts}, false, string(frozen)+" cancelled killed")
	if _, err := s.c.Stop.Kill(s.ctx, "no/such"); code(err) != "not_found" {
		s.Errorf("kill of nothing: %v", err)
	}
}

// TestCancelDuringStart cancels a tree while a child is between its row and its
// process, once with a spawner that goes on and once with one that is dead.
func TestCancelDuringStart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, during := range []thread.Crashpoint{
		scheduler.CrashRegistered, scheduler.CrashPrepared, scheduler.CrashDescribed, scheduler.CrashQueued, scheduler.CrashLaunched, scheduler.CrashRecorded,
	} {
		t.Run("the spawner goes on after "+string(during), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			s.cancelDuringStart(during, root)
		})
	}
	t.Run("the spawner is dead", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		root := s.start("idle", "")
		s.dieAfter(scheduler.CrashPrepared, "start", root)
		stopped, err := s.c.Stop.Cancel(s.ctx, root)
		s.noError(err)
		s.wantReceipts(stopped, true, string(root)+" cancelled interrupted", string(firstChild)+" cancelled not_started")
		s.wantTree(root, store.TreeSpend{Threads: 2})
	})
}

// TestCancelWithBrokenSettings stops a thread although nobody can read how
// patiently.
func TestCancelWithBrokenSettings(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	s.write("config/agent/agent.yaml", "threads: [")
	stopped, err := s.c.Stop.Cancel(s.ctx, root)
	s.noError(err)
	s.wantReceipts(stopped, true, string(root)+" cancelled interrupted", string(child)+" cancelled interrupted")
}

// TestChildrenFirst stops threads none of which acts on a signal: when one is
// settled, those above it still run, with a soft step and without.
func TestChildrenFirst(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, ladder := range map[string]life.Ladder{
		"cancel": {Soft: 20 * time.Millisecond, Term: 20 * time.Millisecond},
		"kill":   {Term: 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			var line []thread.ID
			var settled atomic.Int32
			s.c.Threads.Finisher.Crashpoints = func(at thread.Crashpoint) {
				if at != finish.CrashRegistry {
					return
				}
				above := line[:len(line)-int(settled.Add(1))]
				for _, id := range above {
					if process.Gone(s.puppet(id).pid) {
						s.Errorf("%d levels are settled, and %s is gone already", settled.Load(), id)
					}
				}
			}
			parent := thread.ID("")
			for range 4 {
				parent = s.start("idle", parent)
				s.order(parent, "stubborn")
				line = append(line, parent)
			}
			receipts, err := s.c.Stop.Trees(s.ctx, line[:1], ladder)
			s.noError(err)
			for i, r := range receipts {
				if r.ThreadID != line[i] || r.Status != thread.Cancelled || r.How != string(life.Killed) {
					s.Errorf("receipt %+v", r)
				}
			}
		})
	}
}

// cancelDuringStart has another server cancel a thread while a child of it is
// started, and the start go on when the cancel is on record.
func (s *scene) cancelDuringStart(during thread.Crashpoint, root thread.ID) {
	s.Helper()
	other := s.controller()
	answered := make(chan stop.Stopped, 1)
	s.c.Threads.Crashpoints = func(at thread.Crashpoint) {
		if at != during {
			return
		}
		changes := s.c.Threads.Store.Changes(s.ctx)
		go func() {
			stopped, err := other.Stop.Cancel(s.ctx, root)
			if err != nil {
				s.Error(err)
			}
			answered <- stopped
		}()
		for s.row(firstChild).CancelRequestedAt.IsZero() {
			<-changes
		}
	}
	_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: root})
	// The parent may have ended before the child asked for its budget.
	if during != scheduler.CrashRegistered || !errors.Is(err, store.ErrNoBudget) {
		s.noError(err)
	}
	stopped := <-answered
	if !stopped.Success || len(stopped.Receipts) != 2 {
		s.Errorf("stopped %+v", stopped)
	}
	s.wantState(thread.Cancelled, root, firstChild)
	if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: root}); code(err) != "parent_gone" {
		s.Errorf("a cancelled parent has started a child: %v", err)
	}
}
