package control

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestReconcileSound: nothing is found of threads that were copied, resumed and handed over.
func TestReconcileSound(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	id := s.ended(root)
	_, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: id})
	s.noError(err)
	forked, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: id, Message: "go on"})
	s.noError(err)
	s.order(forked.ThreadID, "claim", "say more", "complete")
	<-process.Watch(s.ctx, s.puppet(forked.ThreadID).pid)
	resumed := s.resume(id).NewThreadID
	s.order(resumed, "say more", "complete")
	<-process.Watch(s.ctx, s.puppet(resumed).pid)
	first := s.start("idle", root)
	next := s.handOver(first)
	s.order(next, "claim")
	r, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil)
	if err != nil || len(r.Findings) > 0 || r.Threads < 6 {
		s.Errorf("found %+v of %d threads, %v", r.Findings, r.Threads, err)
	}
}
