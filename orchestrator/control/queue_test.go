package control

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// narrow is a scene with few slots.
func narrow(t *testing.T, slots int) *scene {
	t.Helper()
	s := newScene(t)
	s.setSlots(slots)
	return s
}

func (s *scene) setSlots(slots int) {
	s.Helper()
	s.write("config/agent/agent.yaml", fmt.Sprintf(`provider: {default: scripted}
threads: {soft_stop_seconds: 1, term_seconds: 0.2, orphans: cancel, max_running: %d}
`, slots))
}

// begin starts a thread and does not wait for its process.
func (s *scene) begin(directive string, parent thread.ID) view.Started {
	s.Helper()
	started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: directive, Parent: parent})
	s.noError(err)
	return started
}

// wantLoad compares how many threads run and how many are queued.
func (s *scene) wantLoad(occupied, queued int) {
	s.Helper()
	got, err := s.c.Threads.Store.QueueLoad(s.ctx)
	s.noError(err)
	if want := (store.QueueLoad{Occupied: occupied, Queued: queued}); got != want {
		s.Errorf("line %+v, want %+v", got, want)
	}
}

// TestQueue starts more threads than may run: the others are queued without a
// process and with a free lock, are shown so, and run in order as slots come
// free.
func TestQueue(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 2)
	root := s.start("idle", "")
	running := s.start("idle", root)
	var queued []thread.ID
	for range 3 {
		started := s.begin("work", root)
		if !started.Queued || started.Status != thread.Created || !started.Success || started.PID != 0 || started.Next == "" {
			s.Errorf("queued: %+v", started)
		}
		queued = append(queued, started.ThreadID)
	}
	s.wantLoad(2, 3)
	for _, id := range queued {
		if held, err := s.c.Threads.Life.Held(life.Key{Thread: id}); err != nil || held {
			s.Errorf("the lock of %s is held: %t, %v", id, held, err)
		}
		if status, err := s.c.View.Status(s.ctx, id); err != nil || !status.Queued || status.Status != thread.Created {
			s.Errorf("status %+v, %v", status, err)
		}
	}
	report, err := s.c.Threads.Sweep(s.ctx)
	if err != nil || report.Settled() != 0 {
		s.Errorf("swept %+v, %v", report, err)
	}
	list, err := s.c.View.List(s.ctx, unfinished)
	s.noError(err)
	for _, row := range list.Threads {
		if row.Queued != slices.Contains(queued, row.ThreadID) {
			s.Errorf("listed %+v", row)
		}
	}
	// Each is started by the process of the thread that ends.
	s.order(running, "complete")
	for _, id := range queued {
		s.order(id, "claim")
		s.wantLoad(2, 2-slices.Index(queued, id))
		if status, err := s.c.View.Status(s.ctx, id); err != nil || status.Queued || status.Status != thread.Running {
			s.Errorf("status %+v, %v", status, err)
		}
		s.order(id, "complete")
	}
	s.wantTree(root, store.TreeSpend{Threads: 5, Active: 1})
}

// TestOneSlot runs two trees of forks, three deep, in one slot: a thread that waits for a
// child gives its slot away, so nobody waits for ever.
func TestOneSlot(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 1)
	fork := func(id thread.ID, directive string) {
		s.Helper()
		_, err := fmt.Fprintln(s.puppet(id).conn, "fork "+directive)
		s.noError(err)
	}
	var trees sync.WaitGroup
	for tree := range 2 {
		top, below := fmt.Sprintf("top%d", tree), fmt.Sprintf("below%d", tree)
		for _, name := range []string{top, below} {
			s.write("directives/"+name+".md", fmt.Sprintf(directive, name, `<limits spend="0.1" depth="5" />`, startsAny))
		}
		root := s.begin(top, "").ThreadID
		trees.Go(func() {
			child, grandchild := thread.NewID(below, testTime, 1), thread.NewID(below, testTime, 2)
			s.order(root, "claim")
			fork(root, below)
			s.order(child, "claim")
			fork(child, below)
			s.order(grandchild, "claim", "complete")
			for _, id := range []thread.ID{child, root} {
				if p := s.puppet(id); !p.lines.Scan() || p.lines.Text() != string(thread.Completed) {
					s.Errorf("the fork of %s came out as %q", id, p.lines.Text())
				}
				s.order(id, "complete")
			}
		})
	}
	trees.Wait()
	s.wantLoad(0, 0)
}

// TestSlotIsTakenBack: a thread gives its slot away while it waits, whoever
// else waits with it, and has it again afterwards.
func TestSlotIsTakenBack(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 2)
	first, second := s.start("idle", ""), s.start("idle", "")
	changes := s.c.Threads.Store.Changes(s.ctx)
	awaitYielded := func(want bool) {
		for s.row(first).Yielded != want {
			<-changes
		}
	}
	_, err := fmt.Fprintln(s.puppet(first).conn, "wait "+string(second))
	s.noError(err)
	awaitYielded(true)
	s.wantLoad(1, 0)

	// A process that a tool of the thread has started waits too, and is done first.
	inTool := s.controller()
	inTool.Threads.Parent = first
	third := s.start("idle", "")
	s.wantLoad(2, 0)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		s.wait(inTool, WaitAny, third)
	}()
	for inTool.Queue.Waits() == 0 {
		s.order(second, "ping")
	}
	s.order(third, "complete")
	<-waited
	awaitYielded(true) // once more, by the thread's own process
	s.order(second, "complete")
	s.puppet(first).lines.Scan()
	awaitYielded(false)
	s.wantLoad(1, 0)
}

// TestDispatcher: a server moves the queue when a slot comes free in a way that
// nobody is there to see: its thread is killed, and its starter is gone.
func TestDispatcher(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, free := range map[string]func(s *scene, running thread.ID){
		"killed": func(s *scene, running thread.ID) {
			s.noError(syscall.Kill(s.puppet(running).pid, syscall.SIGKILL))
		},
		"raised limit": func(s *scene, _ thread.ID) { s.setSlots(2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := narrow(t, 1)
			running := s.start("idle", "")
			s.c.Threads.LeaveChildren() // the starter sees no death
			queued := s.begin("idle", "").ThreadID
			server := s.controller()
			ctx, stop := context.WithCancel(s.ctx)
			defer stop()
			var dispatcher sync.WaitGroup
			dispatcher.Go(func() { server.Queue.Run(ctx) })
			free(s, running)
			s.order(queued, "claim", "complete")
			stop()
			dispatcher.Wait()
		})
	}
}

// TestWaitMovesTheQueue: without a server, a wait for a thread in the queue sees to
// it that it is started.
func TestWaitMovesTheQueue(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 1)
	running := s.start("idle", "")
	s.c.Threads.LeaveChildren()
	queued := s.begin("idle", "").ThreadID
	waited := make(chan view.WaitResult, 1)
	go func() { waited <- s.wait(s.controller(), WaitAll, queued) }()
	s.noError(syscall.Kill(s.puppet(running).pid, syscall.SIGKILL))
	s.order(queued, "claim", "complete")
	if r := <-waited; !r.Success {
		s.Errorf("waited for %+v", r)
	}
}

// TestCancelQueued stops a tree whose children are queued, from two servers
// at once, and with the second kind of stop. None of them is ever started.
func TestCancelQueued(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, ladder := range map[string]life.Ladder{"cancel": {Soft: 3 * time.Second, Term: 3 * time.Second}, "kill": {Term: 3 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const children = 5
			s := narrow(t, 1)
			root := s.start("idle", "")
			for range children {
				s.begin("work", root)
			}
			var group sync.WaitGroup
			for _, c := range []*Controller{s.c, s.controller()} {
				group.Go(func() {
					receipts, err := c.Stop.Trees(s.ctx, []thread.ID{root}, ladder)
					if err != nil || len(receipts) != children+1 {
						s.Errorf("receipts %+v, %v", receipts, err)
						return
					}
					for _, r := range receipts[1:] {
						if r.Status != thread.Cancelled || r.How != "not_started" && r.How != "already_ended" || r.Error != "" {
							s.Errorf("receipt %+v", r)
						}
					}
				})
			}
			group.Wait()
			s.wantLoad(0, 0)
			s.wantTree(root, store.TreeSpend{Threads: children + 1})
			for n := 1; n <= children; n++ {
				if _, err := os.Stat(s.folder(thread.NewID("work", testTime, n)).Log()); err == nil {
					s.Errorf("child %d was started", n)
				}
			}
		})
	}
}

// TestCancelledQueued: the intent of a canceller that is gone holds, and whoever
// looks settles the thread.
func TestCancelledQueued(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 1)
	running := s.start("idle", "")
	queued, next := s.begin("work", "").ThreadID, s.begin("idle", "").ThreadID
	_, err := s.c.Threads.Store.RequestCancel(s.ctx, queued, "", testTime)
	s.noError(err)
	s.order(running, "complete")
	s.order(next, "claim") // it is not in its way
	s.wantState(thread.Created, queued)
	status, err := s.c.View.Status(s.ctx, queued)
	if err != nil || status.Status != thread.Cancelled || status.Problem.Message != "cancelled before it started" {
		s.Errorf("status %+v, %v", status, err)
	}
	s.order(next, "complete")
}

// TestOrphansQueued kills a parent whose child is queued: by the policy it
// is cancelled, or runs all the same.
func TestOrphansQueued(t *testing.T) {
	t.Parallel()
	s := narrow(t, 1)
	root := s.start("idle", "")
	child := s.begin("work", root).ThreadID
	s.noError(syscall.Kill(s.puppet(root).pid, syscall.SIGKILL))
	s.wait(s.c, WaitAll, root)
	s.wantState(thread.Cancelled, child)
	s.wantTree(root, store.TreeSpend{Threads: 2})
}

// TestQueuedRequestKey: a repeated start names the thread that is queued.
func TestQueuedRequestKey(t *testing.T) {
	t.Parallel()
	s := narrow(t, 1)
	running := s.start("idle", "")
	req := action.StartRequest{Directive: "idle", RequestKey: "k"}
	first, err := s.c.Start(s.ctx, action.Caller{}, req)
	s.noError(err)
	again, err := s.controller().Start(s.ctx, action.Caller{}, req)
	if err != nil || !again.Existing || !again.Queued || again.ThreadID != first.ThreadID {
		s.Errorf("started again: %+v, %v", again, err)
	}
	s.order(running, "complete")
	s.order(first.ThreadID, "claim", "complete")
}

// TestForeignProvider: a process without the key for the first thread in the queue
// leaves that to those who have it, and starts the next. Tool runs fit all.
func TestForeignProvider(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 1)
	rich := s.controller()
	rich.Settings.Providers = provider.NewSource(func(string) string { return "a key" })
	running := s.start("idle", "")
	foreign, err := rich.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle", Model: "anthropic/fast"})
	s.noError(err)
	toolRun, err := Threads{s.c}.StartTool(s.ctx, action.Caller{}, action.ToolRequest{ToolID: "rye/file-system/read"})
	s.noError(err)
	id := toolRun.(view.Started).ThreadID
	s.wantLoad(1, 2)
	s.order(running, "complete")
	s.order(id, "claim", "complete")
	s.wantLoad(0, 1)
	s.noError(rich.Queue.Dispatch(s.ctx))
	s.order(foreign.ThreadID, "claim", "complete")
}

// TestComplainsOnce: a thread in the queue that can never run keeps nobody else from
// running, and does not fill the log.
func TestComplainsOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 1)
	first := s.start("idle", "")
	unfit, next := s.begin("idle", "").ThreadID, s.begin("idle", "").ThreadID
	s.noError(os.RemoveAll(string(s.folder(unfit))))
	s.noError(os.WriteFile(string(s.folder(unfit)), nil, 0o600))
	s.order(first, "complete")
	<-s.puppet(first).gone
	var logged bytes.Buffer
	server := s.controller()
	server.Threads.Log = zerolog.New(&logged)
	s.noError(server.Queue.Dispatch(s.ctx))
	s.order(next, "claim", "complete")
	<-s.puppet(next).gone
	for range 3 {
		s.noError(server.Queue.Dispatch(s.ctx))
	}
	if lines := strings.Count(logged.String(), "no usable folder"); lines != 1 {
		s.Errorf("said %d times: %s", lines, logged.String())
	}
}
