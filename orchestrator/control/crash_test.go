package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// playActor is a server that does one thing to a thread and is killed after a
// step of that.
func playActor(args []string) error {
	does, project, id := args[0], args[1], thread.ID(args[2])
	ctx := context.Background()
	env := []string{socketVar + "=" + os.Getenv(socketVar), "GORACE=" + os.Getenv("GORACE")}
	c, err := openController(ctx, project, env)
	if err != nil {
		return err
	}
	c.Threads.Crashpoints, c.Threads.Finisher.Crashpoints, c.Threads.Sweeper.Crashpoints = dieAtPoint, dieAtPoint, dieAtPoint
	c.Threads.Snapshots.Maker.Crashpoints = dieAtPoint
	switch does {
	case "start":
		_, err = c.Start(ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: id})
	case "map":
		_, err = c.Map(ctx, action.Caller{Person: true}, MapRequest{Request: fanout.Request{Directive: "item", Items: numbered(0, 3), Concurrency: 2}})
	case "dispatch":
		err = c.Queue.Dispatch(ctx)
	case "sweep":
		_, err = c.Threads.Sweep(ctx)
	case "cancel":
		_, err = c.Stop.Cancel(ctx, id)
	case "copy", "copy-to-rest", "copy-below", "copy-below-to-rest":
		err = playForker(ctx, c, does, id)
	case "reconcile":
		c.Threads.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		c.Threads.Finisher.Now = c.Threads.Now
		_, err = c.Health.Reconcile(ctx, health.ReconcileInput{All: true, Apply: true}, nil)
	case "resume":
		_, err = c.Continue.Resume(ctx, continuation.ResumeRequest{ThreadID: id, Message: "go on"})
	}
	return errors.Join(err, errors.New("bug; still alive"))
}

// playForker forks a thread in one of the ways of [forkWalks].
func playForker(ctx context.Context, c *Controller, how string, id thread.ID) error {
	source, err := c.Threads.Store.Get(ctx, id)
	for _, walk := range forkWalks(id, source.ParentID) {
		if err == nil && walk.how == how {
			_, err = c.Continue.Fork(ctx, walk.request)
		}
	}
	return err
}

// dieAtPoint kills the process at the step that its environment names.
func dieAtPoint(s thread.Crashpoint) {
	if s == thread.Crashpoint(os.Getenv(pointVar)) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it is delivered
	}
}

// dieAfter has another server do something, in the middle of which it is killed.
func (s *scene) dieAfter(at thread.Crashpoint, action string, id thread.ID) {
	s.Helper()
	executable, err := os.Executable()
	s.noError(err)
	cmd := exec.CommandContext(s.ctx, executable, "actor", action, s.project, string(id))
	cmd.Env = append(append(os.Environ(), s.env...), pointVar+"="+string(at))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.Fatalf("the server that was to die after %s ended with %v: %s", at, err, out)
	}
}

// The first child of a parent in these tests.
var firstChild = thread.NewID("work", testTime, 1)

// TestKilledSpawner kills a spawner after each step before the process runs.
// The next look finds the thread dead and nothing reserved, and the id, or
// the next one, can be used.
func TestKilledSpawner(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{scheduler.CrashClaimed, scheduler.CrashRegistered, scheduler.CrashPrepared, scheduler.CrashDescribed} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			s.dieAfter(at, "start", root)

			list, err := s.c.View.List(s.ctx, unfinished)
			s.noError(err)
			if list.Count != 1 || list.Threads[0].ThreadID != root {
				s.Errorf("active: %+v", list.Threads)
			}
			if at != scheduler.CrashClaimed {
				s.wantState(thread.Error, firstChild)
				if p := s.row(firstChild).Outcome.Error; p.Code != "process_died" {
					s.Errorf("problem %+v", p)
				}
			}
			b, err := s.c.Threads.Store.Budget(s.ctx, root)
			s.noError(err)
			if b.Reserved != 0 || b.Actual != 0 {
				s.Errorf("budget of the parent: %+v", b)
			}
			next := s.start("work", root)
			if (next == firstChild) != (at == scheduler.CrashClaimed) {
				s.Errorf("the next child is %s", next)
			}
		})
	}
}

// TestKilledServer kills a spawner once the process of its thread runs. The
// thread goes on, and another server sees it.
func TestKilledServer(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{scheduler.CrashLaunched, scheduler.CrashRecorded} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			s.dieAfter(at, "start", root)
			s.puppet(firstChild)
			if status, err := s.c.View.Status(s.ctx, firstChild); err != nil || status.Status != thread.Created {
				s.Errorf("status %+v, %v", status, err)
			}
			s.order(firstChild, "claim", "spend 7", "complete")
			r := s.wait(s.controller(), WaitAll, firstChild)
			if !r.Success || r.Results[firstChild].Result != "result of "+string(firstChild) {
				s.Errorf("waited for %+v", r)
			}
			s.wantTree(root, store.TreeSpend{Actual: 7, Threads: 2, Active: 1})
		})
	}
}

// TestDeadThread lets threads die in ways that leave different traces.
func TestDeadThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	tests := []struct {
		name    string
		orders  []string
		signal  syscall.Signal
		state   thread.State
		message string
		spend   thread.Micros
	}{
		{"killed", []string{"spend 5"}, syscall.SIGKILL, thread.Error, "thread process died (killed by SIGKILL)", 5},
		{"killed between ledger and row", []string{"spend 5", "ledger 8"}, syscall.SIGKILL, thread.Error, "thread process died (killed by SIGKILL)", 8},
		{"panic", []string{"panic"}, 0, thread.Error, "thread process died: panic: told to (exit code 2)", 0},
		{"gave up", []string{"give-up"}, 0, thread.Error, "thread process died: told to give up (exit code 1)", 0},
		{"had decided", []string{"spend 5", "decide"}, syscall.SIGKILL, thread.Completed, "", 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			id := s.start("work", root)
			s.order(id, tt.orders...)
			if tt.signal != 0 {
				s.noError(syscall.Kill(s.puppet(id).pid, tt.signal))
			}
			r := s.wait(s.c, WaitAll, id).Results[id]
			if r.Status != tt.state || r.Error != tt.message || r.Cost.Spend != tt.spend {
				s.Errorf("ended as %+v", r)
			}
			s.wantTree(root, store.TreeSpend{Actual: tt.spend, Threads: 2, Active: 1})
		})
	}
}

// TestLeftovers ends a thread while its tools run, one of them in a session of its
// own; none of them acts on a signal. They end with the thread, and nobody else's
// process does. A process that a completed thread has left running on purpose goes on.
func TestLeftovers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a process's environment cannot be read")
	}
	for name, tt := range map[string]struct {
		end   func(s *scene, id thread.ID)
		spare bool
	}{
		"dies": {end: func(s *scene, id thread.ID) {
			s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
		}},
		"is cancelled": {end: func(s *scene, id thread.ID) {
			_, err := s.c.Stop.Cancel(s.ctx, id)
			s.noError(err)
		}},
		"is killed": {end: func(s *scene, id thread.ID) {
			s.order(id, "stubborn")
			_, err := s.c.Stop.Trees(s.ctx, []thread.ID{id}, life.Ladder{Term: 1})
			s.noError(err)
		}},
		"completes": {end: func(s *scene, id thread.ID) { s.order(id, "complete") }, spare: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.start("idle", "")
			own := s.tool(id, "group", process.Mark(s.project, string(id))...)
			away := s.tool(id, "session", process.Mark(s.project, string(id))...)
			strangers := []int{
				s.tool(id, "session", process.Mark(s.project, "another-1")...),
				s.tool(id, "session", process.Mark("/elsewhere", string(id))...),
			}
			tt.end(s, id)
			s.wait(s.c, WaitAll, id)
			for _, pid := range []int{own, away} {
				gone := process.Gone(pid)
				if gone == tt.spare {
					s.Errorf("a process of a tool is gone: %t", gone)
				}
				if !gone {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			for _, pid := range strangers {
				if process.Gone(pid) {
					s.Error("a stranger is gone")
					continue
				}
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// tool lets a thread start a process in a group or session of its own, with the
// environment given.
func (s *scene) tool(id thread.ID, how string, env ...string) int {
	s.Helper()
	s.order(id, "tool "+how+" "+strings.Join(env, " "))
	pid, err := strconv.Atoi(s.puppet(id).lines.Text())
	s.noError(err)
	return pid
}

// TestOrphans kills a parent; the project chooses what becomes of its
// children.
func TestOrphans(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for policy, want := range map[string]thread.State{"cancel": thread.Cancelled, "keep": thread.Running} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.write("config/agent/agent.yaml", fmt.Sprintf(projectSettings, policy))
			root := s.start("idle", "")
			parent := s.start("idle", root)
			child := s.start("work", parent)
			s.order(child, "spend 3")
			s.noError(syscall.Kill(s.puppet(parent).pid, syscall.SIGKILL))
			s.wait(s.c, WaitAll, parent)
			s.wantState(thread.Error, parent)
			s.wantState(want, child)
			if policy == "keep" { // its budget and spending still count
				b, err := s.c.Threads.Store.Budget(s.ctx, root)
				s.noError(err)
				if b.Reserved != 10_000 {
					s.Errorf("budget of the root: %+v", b)
				}
				s.order(child, "complete")
				s.wait(s.c, WaitAll, child)
			}
			s.order(root, "complete")
			s.wait(s.c, WaitAll, root)
			s.wantTree(root, store.TreeSpend{Actual: 3, Threads: 3})
			if b, err := s.c.Threads.Store.Budget(s.ctx, root); err != nil || b.Actual != 3 {
				s.Errorf("the root's actual is not its tree's: %+v, %v", b, err)
			}
		})
	}
}

// TestSweepsAtOnce has several servers sweep many dead threads. One of them
// cannot be settled, which keeps nobody from the others.
func TestSweepsAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const threads, servers = 6, 3
	s := newScene(t)
	root := s.start("idle", "")
	for range threads {
		s.dieAfter(scheduler.CrashPrepared, "start", root)
	}
	stuck := thread.NewID("work", testTime, 2)
	s.noError(os.Mkdir(s.folder(stuck).Transcript(), 0o700))

	var group sync.WaitGroup
	errs := make([]error, servers)
	for i := range servers {
		c := s.controller()
		group.Go(func() { _, errs[i] = c.Threads.Sweep(s.ctx) })
	}
	group.Wait()
	if errors.Join(errs...) == nil {
		s.Error("no sweep has met the thread that cannot be settled")
	}
	for n := 1; n <= threads; n++ {
		if id := thread.NewID("work", testTime, n); id != stuck {
			s.wantState(thread.Error, id)
		}
	}
	if _, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil {
		s.Errorf("list: %v", err)
	}
	s.noError(os.Remove(s.folder(stuck).Transcript()))
	report, err := s.c.Threads.Sweep(s.ctx)
	if err != nil || report.Looked != 2 || !slices.Equal(report.HalfMade, []thread.ID{stuck}) || report.Settled() != 1 {
		s.Errorf("swept %+v, %v", report, err)
	}
	s.wantTree(root, store.TreeSpend{Threads: threads + 1, Active: 1})
}

// TestSettlerIsNoProcess: while somebody settles a dead thread, and so holds
// its lock, the number in its row must not be signalled. It is the number of
// another process here, which must live.
func TestSettlerIsNoProcess(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	stranger := s.start("idle", "")
	dead := s.start("idle", "")
	changes := s.c.Threads.Store.Changes(s.ctx)
	s.noError(storetest.As(s.c.Threads.Store).SetProcess(s.ctx, dead, thread.Process{PID: s.puppet(stranger).pid, Host: "host"}))

	settling, goOn := make(chan struct{}), make(chan struct{})
	other := s.controller()
	other.Threads.Sweeper.StopChildren = func(context.Context, thread.ID) ([]thread.ID, error) {
		close(settling)
		<-goOn
		return nil, nil
	}
	s.c.Threads.LeaveChildren() // it would settle the thread itself
	s.noError(syscall.Kill(s.puppet(dead).pid, syscall.SIGKILL))
	settled := make(chan error, 1)
	go func() {
		_, err := other.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{dead}, Timeout: giveUp})
		settled <- err
	}()
	<-settling
	stopped := make(chan stop.Stopped, 1)
	go func() {
		got, err := s.c.Stop.Kill(s.ctx, dead)
		if err != nil {
			s.Error(err)
		}
		stopped <- got
	}()
	for s.row(dead).CancelRequestedAt.IsZero() {
		<-changes
	}
	close(goOn)
	s.wantReceipts(<-stopped, true, string(dead)+" error already_ended")
	s.noError(<-settled)
	s.order(stranger, "ping") // it is there
	s.wantState(thread.Running, stranger)
}

// TestDamagedFiles settles dead threads whose files cannot be trusted or read.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	s.noError(os.WriteFile(s.folder(id).Meta(), []byte("{"), 0o600))
	s.noError(os.WriteFile(s.folder(id).Transcript(), []byte("\xff\xfe\n{\"seq\":"), 0o600))
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
	if r := s.wait(s.c, WaitAll, id); r.Results[id].Status != thread.Error {
		s.Errorf("waited for %+v", r)
	}
	if status, err := s.c.View.Status(s.ctx, id); err != nil || status.Limits != nil {
		s.Errorf("status %+v, %v", status, err)
	}
}

// TestStaleLookSettlesNobody: a row that was read before another run got the thread
// names a run that nobody has any more. That says nothing of the thread.
func TestStaleLookSettlesNobody(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	stale := s.row(id)
	stale.Run = thread.NewRun()
	now, err := s.c.Threads.Sweeper.Examine(s.ctx, stale)
	if err != nil || now.Status.Terminal() || now.Run != s.row(id).Run || now.Run == stale.Run {
		s.Errorf("it is %+v, %v", now, err)
	}
	s.order(id, "ping") // its process goes on
	if locks, err := s.folder(id).Locks(); err != nil || len(locks) != 1 || filepath.Base(locks[0]) != string(now.Run)+".lock" {
		s.Errorf("locks %q, %v", locks, err)
	}
	s.order(id, "complete")
	s.awaitFree(id)
	if locks, err := s.folder(id).Locks(); err != nil || len(locks) != 0 {
		s.Errorf("left are %q, %v", locks, err)
	}
}

// takenStore is where somebody else has been faster to settle a thread.
type takenStore struct {
	store.Store

	before thread.Record // as it was until then
	taken  bool
	after  func() // at each look at the row from then on
}

// Replace implements [store.Store].
func (s *takenStore) Replace(context.Context, thread.ID, thread.Run, thread.Run) (thread.Record, error) {
	s.taken = true
	return thread.Record{}, thread.ErrSettled
}

// Get implements [store.Store].
func (s *takenStore) Get(ctx context.Context, id thread.ID) (thread.Record, error) {
	if !s.taken {
		return s.before, nil
	}
	s.after()
	return s.Store.Get(ctx, id)
}

// TestLateSettlerHoldsNothing: a process that waits for another settler of a thread has no lock
// of it that would be left if its process ended.
func TestLateSettlerHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	dead := s.row(id)
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
	<-s.puppet(id).gone
	late, own, looked := s.controller(), thread.NewRun(), 0
	late.Threads.Sweeper.NewRun = func() (thread.Run, func()) { return own, func() {} }
	late.Threads.Finisher.Store = &takenStore{Store: s.c.Threads.Store, before: dead, after: func() {
		looked++
		if _, err := os.Lstat(s.folder(id).Lock(own)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it has a lock: %v", err)
		}
	}}
	if _, err := late.Threads.Sweeper.Examine(s.ctx, dead); err != nil || looked == 0 {
		t.Errorf("%d looks, %v", looked, err)
	}
}
