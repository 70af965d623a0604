package control

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// TestStopDuringHandoff cancels chains that move on meanwhile. They end, whichever
// of their threads is named, and the answer names all of them.
func TestStopDuringHandoff(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	t.Run("before the end is decided", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		root := s.start("idle", "")
		first := s.start("work", root)
		s.order(first, "say hello", "stubborn", "make")
		_, err := s.c.Threads.Store.RequestCancel(s.ctx, first, "", testTime)
		s.noError(err)
		s.order(first, "hand-over") // decided before it heard of the cancel
		s.wantStopped(first, secondChild, root)
		if pid := s.row(secondChild).PID; pid != 0 {
			s.Errorf("process %d was started for it", pid)
		}
	})
	t.Run("while the successor runs", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		root := s.start("idle", "")
		first := s.start("work", root)
		child := s.start("work", first)
		s.order(first, "say hello")
		second := s.handOver(first)
		s.wantStopped(first, second, root, child)
	})
	t.Run("by the parent", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		root := s.start("idle", "")
		first := s.start("work", root)
		child := s.start("work", first)
		second := s.handOver(first)
		s.order(child, "say hello")
		third := s.handOver(child)
		stopped, err := s.c.Stop.Cancel(s.ctx, root)
		if err != nil || !stopped.Success || len(stopped.Receipts) != 5 {
			s.Errorf("stopped %+v, %v", stopped, err)
		}
		s.wantState(thread.Cancelled, root, second, third)
		s.wantTree(root, store.TreeSpend{Threads: 5})
	})
}

func (s *scene) wantStopped(first, second, root thread.ID, below ...thread.ID) {
	s.Helper()
	stopped, err := s.c.Stop.Cancel(s.ctx, first)
	if err != nil || !stopped.Success || len(stopped.Receipts) != 2+len(below) || stopped.ThreadID != first || stopped.ResolvedThreadID != second {
		s.Errorf("stopped %+v, %v", stopped, err)
	}
	s.wantState(thread.Continued, first)
	s.wantState(thread.Cancelled, append(below, second)...)
	s.wantTreeFree(root)
	s.order(root, "complete")
}

// TestOrphansOfAChain: children that the first of a chain has started are stopped when
// the last dies, and go on when a thread hands over and dies after it.
func TestOrphansOfAChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	child := s.start("work", first)
	s.order(first, "die-at finish.transcript", "hand-over")
	<-s.puppet(first).gone
	_, err := s.c.Threads.Sweep(s.ctx)
	s.noError(err)
	s.c.Queue.DispatchAndLog(s.ctx, true, nil)
	next := s.row(first).ContinuationThreadID
	s.order(next, "claim")
	s.wantState(thread.Running, child)
	last := s.handOver(child)
	s.noError(syscall.Kill(s.puppet(next).pid, syscall.SIGKILL))
	s.wait(s.c, WaitAll, first, child)
	s.wantState(thread.Error, next)
	s.wantState(thread.Cancelled, last)
	s.wantTreeFree(root)

	again := s.start("work", "")
	below := s.start("work", again)
	last = s.handOver(below)
	if stopped, err := s.c.Stop.Orphans(s.ctx, again); err != nil || !slices.Equal(stopped, []thread.ID{last}) {
		s.Errorf("stopped %v, %v", stopped, err)
	}
}

// TestBelowAChain: a successor works with what the thread before has started, and a
// start that names the thread before is the successor's.
func TestBelowAChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("idle", root)
	child := s.start("work", first)
	second := s.handOver(first)
	late := s.start("work", first)
	if rec := s.row(late); rec.ParentID != second {
		s.Errorf("a start below %s is below %s", first, rec.ParentID)
	}
	for _, id := range []thread.ID{root, first, second} {
		if err := s.c.Threads.NotUpwards(s.ctx, second, []thread.ID{id}); code(err) != "unsupported" {
			s.Errorf("%s may wait for %s: %v", second, id, err)
		}
	}
	if err := s.c.Threads.NotUpwards(s.ctx, second, []thread.ID{child}); err != nil {
		s.Error(err)
	}
	if err := s.c.Threads.IsBelow(s.ctx, child, second, ""); err != nil {
		s.Error(err)
	}
	if status, err := s.c.View.Status(s.ctx, first); err != nil || !slices.Equal(status.Children, []thread.ID{late, child}) ||
		status.ResolvedThreadID != second || status.ChainCost == nil {
		s.Errorf("status %+v, %v", status, err)
	}
	question := []view.Waiting{{ThreadID: child, QuestionID: "one"}}
	for _, news := range []bool{true, false} {
		rows := map[thread.ID]thread.Record{child: s.row(child)}
		if told, err := s.c.tells(s.ctx, second, rows, question); err != nil || told != news {
			s.Errorf("told of a question: %t, %v; want %t", told, err, news)
		}
	}
	if err := s.c.Threads.IsBelow(s.ctx, second, child, ""); code(err) != "permission_denied" {
		s.Errorf("a child may stop its parent: %v", err)
	}
}

// TestForkOfAChain: a caller that starts a thread and waits for it is told what the chain
// came to.
func TestForkOfAChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	type answer struct {
		got any
		err error
	}
	done := make(chan answer, 1)
	ctx := context.WithoutCancel(s.ctx)
	go func() {
		got, err := Threads{s.c}.Start(ctx, inThread(root), action.StartRequest{Directive: "work"})
		done <- answer{got, err}
	}()
	s.order(firstChild, "claim", "say hello")
	s.handOver(firstChild)
	s.order(secondChild, "complete")
	a := <-done
	started, _ := a.got.(view.Started)
	if a.err != nil || started.ThreadID != firstChild || started.ResolvedThreadID != secondChild || started.Status != thread.Completed ||
		started.Result != "result of "+string(secondChild) {
		s.Errorf("%+v, %v", a.got, a.err)
	}
}

// TestRebuildChain loses the registry below chains: one that was handed over twice,
// one whose handoff was decided and not carried out, one that was cut short, and
// one that was resumed.
func TestRebuildChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello")
	second := s.handOver(first)
	decided := s.start("work", root)
	s.order(decided, "say hello", "die-at finish.transcript", "hand-over")
	cut := s.start("work", root)
	s.order(cut, "say hello", "die-at handoff.described", "hand-over")
	over := s.start("work", root)
	s.order(over, "say hello", "complete")
	for _, id := range []thread.ID{decided, cut, over} {
		<-s.puppet(id).gone
	}
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: over, Message: "go on"})
	s.noError(err)
	s.order(resumed.NewThreadID, "claim", "complete")
	<-s.puppet(resumed.NewThreadID).gone
	s.rebuild()
	s.noError(s.c.Close())
	s.c = s.controller()
	_, err = s.c.Threads.Sweep(s.ctx)
	s.noError(err)
	for id, want := range map[thread.ID]int{first: 2, decided: 2, cut: 1, over: 2} {
		if got := s.chain(id); len(got) != want {
			s.Errorf("chain of %s: %v", id, got)
		}
	}
	s.wantState(thread.Continued, first, decided)
	s.wantState(thread.Error, cut)
	s.c.Queue.DispatchAndLog(s.ctx, true, nil)
	for _, id := range []thread.ID{second, s.row(decided).ContinuationThreadID} {
		if id != second {
			s.order(id, "claim")
		}
		s.order(id, "complete")
	}
	s.order(root, "complete")
	if active, err := s.c.View.List(s.ctx, unfinished); err != nil || active.Count != 0 {
		s.Errorf("active: %+v, %v", active.Threads, err)
	}
}

// TestHandoffOfArtifacts: the successor has them though the thread before loses
// them. The writer of a summary is no child that it is told of.
func TestHandoffOfArtifacts(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {summary_directive: idle}\n")
	first := s.start("work", "")
	summary := s.start("idle", first)
	s.order(summary, "complete")
	path, err := s.folder(first).WriteArtifact("00", []byte("kept"))
	s.noError(err)
	next := s.handOver(first)
	s.noError(os.Remove(path))
	content, err := os.ReadFile(filepath.Join(s.folder(next).Artifacts(), filepath.Base(path)))
	if err != nil || string(content) != "kept" {
		s.Errorf("%q, %v", content, err)
	}
	if messages, err := s.c.Threads.Messages(next); err != nil || len(messages) != 1 || messages[0].Role != llm.User ||
		strings.Contains(messages[0].Blocks[0].Text, string(summary)) {
		s.Errorf("the successor of a thread without a word begins with %+v, %v", messages, err)
	}
}

// TestLostSuccessor loses all there was of a successor: that is found, and the
// thread before can be resumed.
func TestLostSuccessor(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first := s.start("work", "")
	s.order(first, "say hello")
	second := s.handOver(first)
	s.order(second, "complete")
	<-s.puppet(second).gone
	s.noError(os.RemoveAll(string(s.folder(second))))
	s.rebuild()
	s.noError(s.c.Close())
	s.c = s.controller()
	found, err := s.c.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil)
	if err != nil || len(found.Findings) != 1 || found.Findings[0].Kind != "chain_broken" || found.Findings[0].ThreadID != first {
		s.Errorf("found %+v, %v", found, err)
	}
	s.forget(second) // the id is free again
	if resumed := s.resume(first); resumed.ReconstructedTurns != 1 {
		s.Errorf("resumed %+v", resumed)
	}
	if found, err = s.c.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil); err != nil || len(found.Findings) != 0 {
		s.Errorf("found %+v, %v", found, err)
	}
}

// forget lets another process come for a thread.
func (s *scene) forget(id thread.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.puppets[id].conn.Close()
	delete(s.puppets, id)
}
