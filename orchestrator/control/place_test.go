package control

import (
	"errors"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// short is a ladder that waits for nobody.
var short = life.Ladder{Soft: time.Millisecond, Term: time.Millisecond}

// foreign are processes that have the number of one here and are not it.
var foreign = map[string]func(*thread.Process){
	"another container": func(p *thread.Process) { p.PIDNamespace += "1" },
	"another machine":   func(p *thread.Process) { p.Boot, p.Host = "another", "there" },
	"an older version":  func(p *thread.Process) { *p = thread.Process{PID: p.PID, Host: "there"} },
}

// TestAttackForeignNumber: the row of a thread names a process number that belongs to
// another program here, because another container or machine wrote it. Nothing is
// signalled, the cancel is recorded for those who run the thread, and the receipt says
// so.
func TestAttackForeignNumber(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, change := range foreign {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			stranger, id := s.start("idle", ""), s.start("idle", "")
			s.order(id, "stubborn")
			p := thread.Process(process.Here("host").Identify(s.puppet(stranger).pid))
			change(&p)
			s.noError(storetest.As(s.c.Threads.Store).SetProcess(s.ctx, id, p))

			stopped, err := s.c.Stop.Stop(s.ctx, short, id)
			s.noError(err)
			r := stopped.Receipts[0]
			if stopped.Success || r.How != "asked_elsewhere" || r.Status != thread.Running || r.Error == "" {
				s.Errorf("receipt %+v", r)
			}
			if s.row(id).CancelRequestedAt.IsZero() {
				s.Error("no cancel is on record")
			}
			s.order(stranger, "ping") // both are there
			s.order(id, "ping", "complete")
			s.wait(s.c, WaitAll, id)
			again, err := s.c.Stop.Stop(s.ctx, short, id)
			s.noError(err)
			s.wantReceipts(again, true, string(id)+" completed already_ended")
		})
	}
}

// TestAttackReusedNumber: the number of a thread's process was given to another
// program after it was recorded. That program is not signalled, because it began at
// another time.
func TestAttackReusedNumber(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stranger, id := s.start("idle", ""), s.start("idle", "")
	p := thread.Process(process.Here("host").Identify(s.puppet(stranger).pid))
	p.Started++
	s.noError(storetest.As(s.c.Threads.Store).SetProcess(s.ctx, id, p))
	rec := s.row(id)
	if s.c.Stop.Alive(s.ctx, rec) {
		s.Errorf("%+v counts as the process of %s", rec.Process, id)
	}
	s.order(stranger, "ping")
}

// TestThreadOfAnotherMachine: its lock looks free here, which says nothing. It is
// left alone while it is heard of, and settled when it has been silent for long.
func TestThreadOfAnotherMachine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle"})
	s.noError(err)
	id := started.ThreadID
	s.order(id, "claim")
	there := thread.Process{PID: 1 << 22, Host: "there", Boot: "another"}
	s.noError(storetest.As(s.c.Threads.Store).SetProcess(s.ctx, id, there))
	s.order(id, "give-up") // its lock is free now
	s.awaitFree(id)

	if rec, err := s.c.Threads.Look(s.ctx, id); err != nil || rec.Status != thread.Running {
		s.Errorf("a thread of another machine is %s, %v", rec.Status, err)
	}
	s.c.Threads.Finisher.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	// The process that gives up may hold the lock for a moment more.
	for rec, err := s.c.Threads.Look(s.ctx, id); rec.Status != thread.Error; rec, err = s.c.Threads.Look(s.ctx, id) {
		if err = errors.Join(err, s.ctx.Err()); err != nil {
			s.Fatalf("a thread that was not heard of for hours is %s, %v", rec.Status, err)
		}
	}
}

// awaitFree waits until nobody holds the lock of a thread.
func (s *scene) awaitFree(id thread.ID) {
	s.Helper()
	for {
		held, err := s.c.Threads.Life.Held(life.Key{Thread: id})
		s.noError(err)
		if !held {
			return
		}
		s.noError(s.ctx.Err())
	}
}
