package control

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestReconcileSound: nothing is found of threads that were copied, resumed and handed over.
func TestReconcileSound(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	id := s.ended(root)
	_, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: id})
	s.noError(err)
	forked, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: id, Message: "go on"})
	s.noError(err)
	s.order(forked.ThreadID, "claim", "say more", "complete")
	<-s.puppet(forked.ThreadID).gone
	resumed := s.resume(id).NewThreadID
	s.order(resumed, "say more", "complete")
	<-s.puppet(resumed).gone
	first := s.start("idle", root)
	next := s.handOver(first)
	s.order(next, "claim")
	r, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil)
	if err != nil || len(r.Findings) > 0 || r.Threads < 6 {
		s.Errorf("found %+v of %d threads, %v", r.Findings, r.Threads, err)
	}
}

// TestReconcileRowsMadeAgain: a row that was made again does not know its run. Once apply
// has written the rendering of such a thread, nothing is found.
func TestReconcileRowsMadeAgain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	id := s.ended(s.start("idle", ""))
	again, err := s.c.Threads.Store.Get(s.ctx, id)
	s.noError(err)
	s.remove(id)
	s.noError(s.c.Threads.Store.EndDeletions(s.ctx, []thread.ID{id}))
	again.ParentID = ""
	_, err = s.c.Threads.Store.Restore(s.ctx, []store.Restored{{Record: again}})
	s.noError(err)
	s.noError(os.Remove(s.rendering(id)))
	for _, apply := range []bool{true, false} {
		r, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true, Apply: apply}, nil)
		found := slices.DeleteFunc(r.Findings, func(f health.Finding) bool { return f.ThreadID != id || f.Mended })
		if err != nil || len(found) > 0 || apply == (r.Mended == 0) {
			t.Errorf("apply %t found %+v, mended %d, %v", apply, found, r.Mended, err)
		}
	}
}

// fleeting is where the life of a thread ends right after it was looked at, as that of
// somebody who completes its end does.
type fleeting struct {
	life.Life

	end func()
}

func (f fleeting) Held(k life.Key) (bool, error) {
	held, err := f.Life.Held(k)
	f.end()
	return held, err
}

// TestReconcileFleetingLife: a lock that has gone by the time it is looked at is none that
// a process has left.
func TestReconcileFleetingLife(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	id := s.ended(s.start("idle", ""))
	lock := s.folder(id).Lock(thread.NewRun())
	s.noError(os.WriteFile(lock, nil, 0o600))
	c := s.later()
	c.Threads.Life = fleeting{c.Threads.Life, func() { _ = os.Remove(lock) }}
	r, err := c.Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil)
	if err != nil || len(r.Findings) > 0 || r.Threads != 2 {
		t.Errorf("found %+v of %d threads, %v", r.Findings, r.Threads, err)
	}
}

// TestReconcileLateSettler: somebody comes too late to settle a thread, right after its life
// was looked at. The lock is held, and not left.
func TestReconcileLateSettler(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	id := s.ended(s.start("idle", ""))
	before := s.folder(id).Lock(thread.NewRun())
	s.noError(os.WriteFile(before, nil, 0o600))
	c := s.later()
	late := sync.OnceFunc(func() {
		s.noError(os.Remove(before))
		lock, err := process.Acquire(s.folder(id).Lock(thread.NewRun()))
		s.noError(err)
		t.Cleanup(func() { _ = lock.Remove() })
	})
	c.Threads.Life = fleeting{c.Threads.Life, late}
	r, err := c.Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil)
	if err != nil || len(r.Findings) > 0 || r.Threads != 2 {
		t.Errorf("found %+v of %d threads, %v", r.Findings, r.Threads, err)
	}
}

// TestReconcileWhileOneEnds: somebody ends a thread between the look at its files and the one
// at its life. The row and the files agree then.
func TestReconcileWhileOneEnds(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	id := s.ended(s.start("idle", ""))
	ended := s.meta(id)
	before := ended
	before.Status, before.Outcome, before.Transcript = thread.Running, nil, nil
	s.noError(s.folder(id).WriteMeta(before, homeOf(s.c).Seal))
	c := s.later()
	c.Threads.Life = fleeting{c.Threads.Life, func() { s.noError(s.folder(id).WriteMeta(ended, homeOf(s.c).Seal)) }}
	r, err := c.Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil)
	if err != nil || len(r.Findings) > 0 || r.Threads != 2 {
		t.Errorf("found %+v of %d threads, %v", r.Findings, r.Threads, err)
	}
}
