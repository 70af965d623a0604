package control

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// failures is a scene whose threads die, with a directive that is tried again after an
// hour, three times in all. The scene's clock does not move: a thread is made to have
// died an hour ago, or just now.
func failures(t testing.TB) *scene {
	s := newScene(t)
	s.write("directives/again.md", fmt.Sprintf(directive, "again", `<limits spend="0.01" turns="10" /><retry attempts="3" backoff="fixed" delay="3600" />`, startsAny))
	return s
}

// die kills a thread that has said something and spent 5, so much before now.
func (s *scene) die(id thread.ID, ago time.Duration) {
	s.Helper()
	s.order(id, "say hello", "spend 5")
	s.c.Threads.LeaveChildren()
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
	<-s.puppet(id).gone
	s.c.Threads.Finisher.Now = func() time.Time { return testTime.Add(-ago) }
	_, err := s.c.Threads.Sweep(s.ctx)
	s.noError(err)
	s.c.Threads.Finisher.Now = s.c.Threads.Now
	s.wantState(thread.Error, id)
}

// next is the thread that continues one. Another pass may be about to make it.
func (s *scene) next(id thread.ID) thread.ID {
	s.Helper()
	rec := s.row(id)
	for ; rec.AwaitsRetry() && s.ctx.Err() == nil; rec = s.row(id) {
		s.noError(s.c.Queue.Dispatch(s.ctx))
	}
	if rec.ContinuationThreadID == "" {
		s.Fatalf("%s is not continued: %q", id, rec.RetryNote)
	}
	return rec.ContinuationThreadID
}

// TestRetry: a thread that dies is tried again when it is time, with its conversation and
// what is left of its limits, as often as its directive says. A wait for it goes on
// meanwhile.
func TestRetry(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	root := s.start("idle", "")
	first := s.start("again", root)
	s.die(first, 0)
	due := testTime.Add(time.Hour)
	if rec := s.row(first); !rec.RetryAt.Equal(due) || rec.Over() {
		t.Errorf("the row: %+v", rec)
	}
	s.noError(s.c.Queue.Dispatch(s.ctx))
	if rec := s.row(first); rec.ContinuationThreadID != "" {
		t.Errorf("it was tried again before it is time: %+v", rec)
	}
	now, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{first}})
	s.noError(err)
	if r := now.Results[first]; len(now.Pending) != 1 || r.Retry == nil || !r.Retry.At.Equal(due) || r.Retry.Attempt != 2 || now.Success || !strings.Contains(now.Next, "2026-03-04T06:06:07Z") {
		t.Errorf("waited for %+v", now)
	}
	status, err := s.c.View.Status(s.ctx, first)
	if s.noError(err); status.Retry == nil || status.Status != thread.Error {
		t.Errorf("status %+v", status)
	}
	s.c.Threads.Now = func() time.Time { return due }
	s.noError(s.c.Queue.Dispatch(s.ctx))
	second := s.next(first)
	s.order(second, "claim")
	rec, meta, before := s.row(second), s.meta(second), s.meta(first)
	if rec.ParentID != root || rec.ChainRootID != first || s.row(root).SpawnCount != 1 {
		t.Errorf("row %+v; %d children", rec, s.row(root).SpawnCount)
	}
	if c := meta.Continuation; c == nil || c.Via != thread.ViaRetry || c.Messages != 2 || c.Position != 2 || meta.Attempt != 2 || !strings.Contains(c.Message, "Attempt 2 of 3") ||
		strings.Contains(c.Message, "hello") {
		t.Errorf("thread.json %+v, %+v", meta, c)
	}
	if whole := meta.Continuation.Whole; whole == nil || *whole != before.Limits {
		t.Errorf("limits of all attempts %+v, want %+v", whole, before.Limits)
	}
	if meta.Limits.Spend != before.Limits.Spend-5 || meta.Limits.Turns != before.Limits.Turns-before.Cost.Turns || meta.Limits.DurationSeconds != before.Limits.DurationSeconds {
		t.Errorf("limits %+v, were %+v, used %+v", meta.Limits, before.Limits, before.Cost)
	}
	if !strings.Contains(s.read(s.folder(first).Transcript()), "Attempt 2 of 3") || before.Outcome.Retry == nil {
		t.Errorf("the first says nothing of it: %+v", before.Outcome)
	}
	s.die(second, 2*time.Hour)
	s.noError(s.c.Queue.Dispatch(s.ctx))
	third := s.next(second)
	s.order(third, "claim")
	s.die(third, 2*time.Hour)
	if rec := s.row(third); rec.AwaitsRetry() || rec.Outcome.Retry != nil {
		t.Errorf("after the last attempt: %+v", rec)
	}
	r := s.wait(s.c, WaitAll, first)
	if got := r.Results[first]; got.ResolvedThreadID != third || got.Status != thread.Error || got.Retry != nil || len(r.Pending) != 0 {
		t.Errorf("waited for %+v", r)
	}
	s.order(root, "spend 1")
	s.wantTree(root, store.TreeSpend{Actual: 16, Threads: 4, Active: 1})
}

// TestRetryWaits: a call that waits makes the attempt itself, and sees its end.
func TestRetryWaits(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	first := s.start("again", "")
	s.die(first, 2*time.Hour)
	waited := make(chan string)
	go func() {
		r := s.wait(s.c, WaitAll, first)
		waited <- fmt.Sprintf("%v %s", r.Success, r.Results[first].Status)
	}()
	second := thread.ID("")
	for second == "" && s.ctx.Err() == nil {
		second = s.row(first).ContinuationThreadID
	}
	s.order(second, "claim", "say hello", "complete")
	if got := <-waited; got != "true completed" {
		t.Errorf("waited: %s", got)
	}
}

// TestRetryBegunAgain: of a thread that died before it had said anything nothing is left
// to go on with: it begins anew.
func TestRetryBegunAgain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	first := s.start("again", "")
	s.c.Threads.LeaveChildren()
	s.noError(syscall.Kill(s.puppet(first).pid, syscall.SIGKILL))
	<-s.puppet(first).gone
	s.c.Threads.Finisher.Now = func() time.Time { return testTime.Add(-2 * time.Hour) }
	_, err := s.c.Threads.Sweep(s.ctx)
	s.noError(err)
	s.noError(s.c.Queue.Dispatch(s.ctx))
	second := s.next(first)
	s.order(second, "claim", "say hello", "complete")
	if m := s.meta(second); m.Continuation != nil || m.Attempt != 2 || m.ContinuationOf != first {
		t.Errorf("thread.json %+v", m)
	}
	if v := s.verify(second); !v.Verified {
		t.Errorf("%+v", v)
	}
}

// TestRetryAfterParent: a parent that has completed is not paid out of again, but what it
// had left bounds the attempt, and it has no more children than it had.
func TestRetryAfterParent(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	root := s.start("idle", "")
	parent := s.start("idle", root)
	first := s.start("again", parent)
	s.die(first, 2*time.Hour)
	s.order(parent, "say hello", "complete")
	s.noError(s.c.Queue.Dispatch(s.ctx))
	second := s.next(first)
	s.order(second, "claim", "spend 3", "complete")
	if rec := s.row(second); rec.ParentID != parent || s.row(parent).SpawnCount != 1 {
		t.Errorf("row %+v", rec)
	}
	s.order(root, "complete")
	s.wantTree(root, store.TreeSpend{Actual: 8, Threads: 4})
}

// TestRetryCancelled: a thread that waits to be tried again is cancelled, or one above it:
// nothing runs, and the receipt says so. So does a person who resumes it.
func TestRetryCancelled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	root := s.start("idle", "")
	below, alone, resumed := s.start("again", root), s.start("again", ""), s.start("again", "")
	for _, id := range []thread.ID{below, alone} {
		s.die(id, 0)
	}
	s.die(resumed, 2*time.Hour)
	s.resume(resumed)
	if m := s.meta(s.next(resumed)); m.Attempt != 0 {
		t.Errorf("a person begins with attempt %d", m.Attempt)
	}
	got, err := s.c.Stop.Cancel(s.ctx, alone)
	if s.noError(err); !got.Success || len(got.Receipts) != 1 || got.Receipts[0].How != "not_retried" {
		t.Errorf("stopped %+v", got)
	}
	_, err = s.c.Stop.Cancel(s.ctx, root)
	s.noError(err)
	s.c.Threads.Now = func() time.Time { return testTime.Add(2 * time.Hour) }
	s.noError(s.c.Queue.Dispatch(s.ctx))
	for _, id := range []thread.ID{below, alone} {
		if rec := s.row(id); rec.ContinuationThreadID != "" || rec.AwaitsRetry() || rec.RetryNote != thread.RetryCancelled {
			t.Errorf("%s after its cancel: %+v", id, rec)
		}
	}
	if r := s.wait(s.c, WaitAll, below); len(r.Pending) != 0 || r.Results[below].NotRetried == "" {
		t.Errorf("waited for %+v", r)
	}
}

// TestRetryDropped: a thread that cannot be tried again says why once, and a wait for it
// ends with that.
func TestRetryDropped(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *scene, id thread.ID)
		want   string
	}{
		"its directive says it no more": {func(s *scene, _ thread.ID) {
			s.write("directives/again.md", fmt.Sprintf(directive, "again", "", startsAny))
		}, "does not ask for attempt 2"},
		"its directive asks for less": {func(s *scene, _ thread.ID) {
			s.write("directives/again.md", fmt.Sprintf(directive, "again", `<retry attempts="1" />`, startsAny))
		}, "does not ask for attempt 2"},
		"its directive is broken": {func(s *scene, _ thread.ID) { s.write("directives/again.md", "no directive") }, "again"},
		"its transcript was changed": {func(s *scene, id thread.ID) {
			s.edit(s.folder(id).Transcript(), "hello", "hallo")
		}, "does not verify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := failures(t)
			id := s.start("again", "")
			s.die(id, 2*time.Hour)
			tt.change(s, id)
			r := s.wait(s.c, WaitAll, id)
			if got := r.Results[id]; !strings.Contains(got.NotRetried, tt.want) || got.Retry != nil || len(r.Pending) != 0 {
				t.Errorf("waited for %+v", r)
			}
			if rec := s.row(id); rec.ContinuationThreadID != "" {
				t.Errorf("it is continued by %s", rec.ContinuationThreadID)
			}
		})
	}
}

// TestAttackRetryRow: a process writes into the registry that failed threads are to be tried again, now and for good.
// The threads have signed nothing of that, and none runs.
func TestAttackRetryRow(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	plain, last := s.start("work", ""), s.start("again", "")
	s.die(plain, 2*time.Hour)
	s.die(last, 2*time.Hour)
	_, err := s.c.Threads.Store.DropRetry(s.ctx, last, "for this test", testTime)
	s.noError(err)
	s.sql("UPDATE threads SET retry_at = 1, result = replace(result, '\"error\":', '\"retry\":{\"at\":\"2026-03-04T05:06:07Z\",\"attempt\":2,\"attempts\":1000000000},\"error\":') WHERE thread_id = ?", plain)
	for s.row(plain).AwaitsRetry() && s.ctx.Err() == nil {
		s.noError(s.c.Queue.Dispatch(s.ctx))
	}
	if rec := s.row(plain); rec.ContinuationThreadID != "" || rec.AwaitsRetry() || !strings.Contains(rec.RetryNote, "signed") && !strings.Contains(rec.RetryNote, "verify") {
		t.Errorf("%+v", rec)
	}
}

// TestAttackRetryReset: a model resumes its failed child itself, over and over, to have the attempts counted anew.
// They are counted along the chain, and end.
func TestAttackRetryReset(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	root := s.start("idle", "")
	id := s.start("again", root)
	for attempt := 1; ; attempt++ {
		s.die(id, 2*time.Hour)
		if !s.row(id).AwaitsRetry() {
			if attempt != 3 {
				t.Errorf("the last attempt was %d", attempt)
			}
			return
		}
		if attempt == 2 { // the model is faster than the retry
			resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: id, Message: "go on", From: root})
			s.noError(err)
			if m := s.meta(resumed.NewThreadID); m.Attempt != attempt {
				t.Errorf("its attempt is %d", m.Attempt)
			}
			id = resumed.NewThreadID
			s.order(id, "claim")
			s.die(id, 2*time.Hour)
		}
		s.noError(s.c.Queue.Dispatch(s.ctx))
		id = s.next(id)
		s.order(id, "claim")
	}
}

// TestRetryKilled kills servers while they make an attempt, at each step: one thread
// continues the one before, and the attempt is made.
func TestRetryKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	points := []thread.Crashpoint{
		scheduler.CrashClaimed, scheduler.CrashRegistered, scheduler.CrashPrepared, scheduler.CrashDescribed, scheduler.CrashLinked,
		scheduler.CrashQueued, scheduler.CrashLaunched, scheduler.CrashRecorded,
	}
	for _, at := range points {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := failures(t)
			root := s.start("idle", "")
			first := s.start("again", root)
			s.die(first, 2*time.Hour)
			s.dieAfter(at, "dispatch", "")
			s.c.Threads.Finisher.Now = func() time.Time { return testTime.Add(-2 * time.Hour) }
			_, err := s.c.Threads.Sweep(s.ctx)
			s.noError(err)
			last := s.next(first)
			s.noError(s.c.Queue.Dispatch(s.ctx))
			if s.row(last).Status == thread.Error { // it died before it began, and that was an attempt
				last = s.next(last)
			}
			s.order(last, "claim", "say hello", "spend 2", "complete")
			if r := s.wait(s.c, WaitAll, first); !r.Success {
				t.Errorf("waited for %+v", r)
			}
			if rec := s.row(first); rec.ContinuationThreadID == "" || rec.AwaitsRetry() {
				t.Errorf("the first: %+v", rec)
			}
			_, tree, err := s.c.Threads.Store.Tree(s.ctx, root)
			if s.noError(err); tree.Actual != 7 || tree.Active != 1 || tree.Reserved != 0 {
				t.Errorf("the money: %+v", tree)
			}
		})
	}
}

// TestRetryOnce: several servers come to make attempts at the same time. Each is made once.
func TestRetryOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const failed, servers = 4, 4
	s := failures(t)
	var ids []thread.ID
	for range failed {
		id := s.start("again", "")
		s.die(id, 2*time.Hour)
		ids = append(ids, id)
	}
	var group sync.WaitGroup
	for range servers {
		c := s.controller()
		group.Go(func() {
			for range 3 {
				if err := c.Queue.Dispatch(s.ctx); err != nil {
					s.Errorf("dispatch: %v", err)
				}
			}
		})
	}
	group.Wait()
	s.noError(s.c.Queue.Dispatch(s.ctx))
	for _, id := range ids {
		s.order(s.next(id), "claim", "say hello", "complete")
	}
	rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{})
	if s.noError(err); len(rows) != 2*failed {
		t.Errorf("%d threads, want %d", len(rows), 2*failed)
	}
}

// TestRetryWithoutKey: threads that nobody here can try again keep no other waiting, however
// many they are.
func TestRetryWithoutKey(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	with := s.controller("ANTHROPIC_API_KEY=k")
	const others = 21 // one more than a pass makes attempts
	for range others {
		started, err := with.Start(s.ctx, action.Caller{Person: true}, action.StartRequest{Directive: "again", Model: "anthropic/claude-haiku-4-5"})
		s.noError(err)
		s.order(started.ThreadID, "claim")
		with.Threads.LeaveChildren()
		s.die(started.ThreadID, 3*time.Hour)
	}
	id := s.start("again", "")
	s.die(id, 2*time.Hour)
	s.noError(s.c.Queue.Dispatch(s.ctx))
	if rec := s.row(id); rec.AwaitsRetry() {
		t.Error("the thread waits behind those of another provider")
	}
	if list, _, err := s.c.Threads.Store.DueRetries(s.ctx, testTime, 100); err != nil || len(list) != others {
		t.Errorf("%d attempts are due (%v), want %d", len(list), err, others)
	}
}

// TestRetryOfEntry: the set of an entry that is to be tried again goes on, and its result
// is that of the last attempt.
func TestRetryOfEntry(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	s.write("directives/item.md", fmt.Sprintf(itemDirective, `<retry attempts="2" backoff="fixed" delay="3600" />`))
	set := s.begunSet(ofItems(numbered(0, 1), 1))
	first := s.workers(set)[0]
	s.order(first, "claim")
	s.die(first, 2*time.Hour)
	if rec, err := s.c.Threads.Examine(s.ctx, set); err != nil || rec.Status != thread.Running {
		t.Fatalf("the set: %+v, %v", rec, err)
	}
	s.noError(s.c.Queue.Dispatch(s.ctx))
	s.order(s.next(first), "claim", "say hello", "complete")
	if r := s.wait(s.c, WaitAll, set); !r.Success {
		t.Errorf("waited for %+v", r)
	}
}
