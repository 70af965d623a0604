package control

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// secondChild continues firstChild: all happens in one second.
var secondChild = thread.NewID("work", testTime, 2)

// chain is the ids of the chain of a thread.
func (s *scene) chain(id thread.ID) (ids []thread.ID) {
	s.Helper()
	rows, err := lineage.Chain(id, s.c.Threads.Getter(s.ctx))
	s.noError(err)
	for _, rec := range rows {
		ids = append(ids, rec.ThreadID)
	}
	return ids
}

func (s *scene) meta(id thread.ID) thread.Meta {
	s.Helper()
	meta, err := s.folder(id).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	return meta
}

// handOver lets a thread hand over, and the successor claim its row.
func (s *scene) handOver(id thread.ID) thread.ID {
	s.Helper()
	s.order(id, "hand-over")
	<-s.puppet(id).gone
	next := s.row(id).ContinuationThreadID
	if next == "" {
		s.Fatalf("%s is %+v and names no successor", id, s.row(id))
	}
	s.order(next, "claim")
	return next
}

// TestHandoff follows a thread with a child that hands over twice: a caller that waits for
// it is told what the last one of the chain came to, and money, artifacts and
// child pass on.
func TestHandoff(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	child := s.start("work", first)
	content := []byte("long result")
	hash := fmt.Sprintf("%x", sha256.Sum256(content))
	_, err := s.folder(first).WriteArtifact(hash, content)
	s.noError(err)
	s.order(first, "say hello", "spend 7")
	second := s.handOver(first)
	s.wantState(thread.Continued, first)
	s.wantState(thread.Running, second)
	rec, meta, before := s.row(second), s.meta(second), s.meta(first)
	if rec.ParentID != root || rec.ContinuationOf != first || rec.ChainRootID != first || s.row(root).SpawnCount != 1 {
		s.Errorf("the successor's row: %+v", rec)
	}
	want := before.Limits
	want.Turns, want.Tokens, want.DurationSeconds, want.Spawns = want.Turns-1, want.Tokens-100, want.DurationSeconds-2, want.Spawns-1
	b, err := s.c.Threads.Store.Budget(s.ctx, second)
	s.noError(err)
	if want.Spend = b.MaxSpend; meta.Limits != want || b.MaxSpend >= before.Limits.Spend-7 {
		s.Errorf("limits %+v, budget %+v, want %+v", meta.Limits, b, want)
	}
	if c := meta.Continuation; c == nil || c.Whole == nil || *c.Whole != before.Limits || c.Via != thread.ViaHandoff || c.Position != 2 || meta.Inputs[handoff.InputPreviousThread] != string(first) ||
		!slices.Equal(meta.Capabilities, before.Capabilities) || meta.Outcome != nil || meta.ContinuationOf != first {
		s.Errorf("thread.json of the successor: %+v", meta)
	}
	messages, err := s.c.Threads.Messages(second)
	s.noError(err)
	if len(messages) != meta.Continuation.Messages || len(messages) < 2 ||
		!strings.Contains(messages[0].Blocks[0].Text, string(child)) || !strings.Contains(messages[0].Blocks[0].Text, hash[:16]) {
		s.Errorf("the successor begins with %+v", messages)
	}
	if found, err := s.folder(second).ListArtifacts(); err != nil || len(found) != 1 {
		s.Errorf("artifacts of the successor: %v, %v", found, err)
	}
	if below, err := lineage.IsBelow(child, second, s.c.Threads.Getter(s.ctx)); err != nil || !below {
		s.Errorf("the child is below the successor: %t, %v", below, err)
	}
	s.order(second, "say and now", "spend 5")
	third := s.handOver(second)
	if p := s.meta(third).Continuation.Position; p != 3 || !slices.Equal(s.chain(second), []thread.ID{first, second, third}) {
		s.Errorf("position %d in %v", p, s.chain(second))
	}
	s.order(child, "say done", "spend 3", "complete")
	s.order(third, "say at last", "spend 2", "complete")
	r := s.wait(s.c, WaitAll, first, second).Results
	if got := r[first]; got.Status != thread.Completed || got.ResolvedThreadID != third || got.Result != "result of "+string(third) ||
		r[second].ResolvedThreadID != third || got.Cost.Spend != 2 || got.ChainCost.Spend != 14 {
		s.Errorf("waited for %+v", r)
	}
	s.wantTree(root, store.TreeSpend{Actual: 17, Threads: 5, Active: 1})
	s.wantChain(first, third)
	s.order(root, "complete")
	for _, id := range []thread.ID{root, first, second, third} {
		if verdict := s.verify(id); !verdict.Verified {
			s.Errorf("%s: %+v", id, verdict)
		}
	}
	s.wantReceipt(first, child)
}

// wantChain asks for the chain of a thread that has spent 14, and for what is in
// it.
func (s *scene) wantChain(first, last thread.ID) {
	s.Helper()
	for _, id := range []thread.ID{first, last} {
		chain, err := s.c.View.GetChain(s.ctx, id)
		if err != nil || chain.Length != 3 || chain.Chain[0].ThreadID != first || chain.Chain[2].ThreadID != last ||
			chain.Chain[1].Via != thread.ViaHandoff || chain.Cost.Spend != 14 || chain.TreeSpend != 17 {
			s.Errorf("chain of %s: %+v, %v", id, chain, err)
		}
		if (chain.ResolvedThreadID == last) != (id == first) {
			s.Errorf("%s is continued by %q", id, chain.ResolvedThreadID)
		}
	}
	total, err := s.c.View.Aggregate(s.ctx, []thread.ID{first, last})
	if err != nil || total.Totals.Threads != 1 || total.Totals.Cost.Spend != 14 || total.Totals.TreeSpend != 17 {
		s.Errorf("aggregated %+v, %v", total.Totals, err)
	}
	found, err := s.c.View.ChainSearch(s.ctx, view.ChainSearchInput{ThreadID: last, Query: "ANSWER to"})
	if err != nil || found.Count != 3 || found.Matches[0].ThreadID != first || found.Matches[0].EventType != thread.EventCognitionOut ||
		len(found.Searched) != 3 || found.Truncated {
		s.Errorf("found %+v, %v", found, err)
	}
	found, err = s.c.View.ChainSearch(s.ctx, view.ChainSearchInput{ThreadID: last, Query: "^answer to .* now$", SearchType: "regex"})
	if err != nil || found.Count != 1 || found.Matches[0].ThreadID == first {
		s.Errorf("found %+v, %v", found, err)
	}
	found, err = s.c.View.ChainSearch(s.ctx, view.ChainSearchInput{ThreadID: last, Query: "answer", Limit: 1})
	if err != nil || found.Count != 1 || !found.Truncated {
		s.Errorf("found %+v, %v", found, err)
	}
	for _, bad := range []view.ChainSearchInput{{ThreadID: last, Query: "(", SearchType: "regex"}, {ThreadID: last, Query: "a", SearchType: "glob"}, {ThreadID: last}} {
		if _, err := s.c.View.ChainSearch(s.ctx, bad); code(err) != "bad_arguments" {
			s.Errorf("search for %+v: %v", bad, err)
		}
	}
}

// wantReceipt: a receipt of a thread that handed over has what it has started, and
// not who continues it.
func (s *scene) wantReceipt(id, child thread.ID) {
	s.Helper()
	sealed, err := s.c.Verify.Receipt(s.ctx, id)
	s.noError(err)
	receipt, _, err := audit.OpenReceipt(sealed)
	if err != nil || receipt.Status != thread.Continued || receipt.ChainRootID != id || receipt.TreeSpend != 10 ||
		len(receipt.Below) != 1 || receipt.Below[0].ThreadID != child {
		s.Errorf("receipt %+v, %v", receipt, err)
	}
}

// TestAttackFreshMoney: settings with limits: fresh let a thread that is limited to a few cents spend them again in each thread of its chain. Turns, tokens and time begin anew, and money does not.
func TestAttackFreshMoney(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {limits: fresh}\n")
	s.write("directives/dear.md", fmt.Sprintf(directive, "dear", `<limits spend="0.7" />`, startsAny))
	root := s.start("idle", "") // has 1 dollar
	dear := s.start("dear", root)
	s.order(dear, "say hello", "spend 500000")
	next := s.handOver(dear)
	if got, want := s.meta(next).Limits, s.meta(dear).Limits; got.Turns != want.Turns || got.Spend != 200_000 || s.reserved(root) != 200_000 {
		s.Errorf("limits %+v, held %d; the thread before had %+v", got, s.reserved(root), want)
	}
	alone := s.start("work", "") // has 1 dollar
	var spent thread.Micros
	for range 3 {
		s.order(alone, "say hello", "spend 3000")
		alone, spent = s.handOver(alone), spent+3000
		if got := s.meta(alone).Limits.Spend; got != 1_000_000-spent {
			s.Errorf("a root of $1 goes on with %s after %s", got, spent)
		}
	}
}

func (s *scene) reserved(id thread.ID) thread.Micros {
	s.Helper()
	b, err := s.c.Threads.Store.Budget(s.ctx, id)
	s.noError(err)
	return b.Reserved
}

// TestNoHandoff refuses what cannot be handed over, and leaves nothing behind.
func TestNoHandoff(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {max_chain: 1}\n")
	root := s.start("idle", "")
	first := s.start("work", root)
	ended := s.start("work", root)
	s.order(ended, "complete")
	if _, err := s.c.Continue.MakeSuccessor(s.ctx, handoff.Request{ThreadID: ended}); !isPredecessorError(err) {
		s.Errorf("of a thread that has ended: %v", err)
	}
	second := s.handOver(first)
	var long *handoff.ChainError
	if _, err := s.c.Continue.MakeSuccessor(s.ctx, handoff.Request{ThreadID: second}); !errors.As(err, &long) || long.Handoffs != 1 || long.Max != 1 {
		s.Errorf("of a long chain: %v", err)
	}
	alone := s.start("work", root)
	s.order(alone, "say hello")
	_, err := s.c.Threads.Store.RequestCancel(s.ctx, alone, "", testTime)
	s.noError(err)
	if _, err := s.c.Continue.MakeSuccessor(s.ctx, handoff.Request{ThreadID: alone}); !isPredecessorError(err) {
		s.Errorf("of a thread that is asked to stop: %v", err)
	}
	if rows, err := s.c.Threads.Store.Descendants(s.ctx, root); err != nil || len(rows) != 4 {
		s.Errorf("threads: %+v, %v", rows, err)
	}
}

// TestResumePastMaxChain: a thread cannot resume one that may not hand over any
// more, and nothing is paid for; a person can, and handoffs are counted from there.
func TestResumePastMaxChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {max_chain: 1}\n")
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello")
	second := s.handOver(first)
	s.order(second, "say more", "complete")
	before := s.row(root).SpawnCount
	_, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: first, Message: "go on", From: root})
	if err == nil || tool.AsFault(err).Code != tool.CodeUnsupported || !strings.Contains(err.Error(), "there were 1 of 1") || s.row(root).SpawnCount != before || s.row(second).ContinuationThreadID != "" {
		s.Errorf("resumed by a thread: %v", err)
	}
	third := s.resume(first).NewThreadID
	if c := s.meta(third).Continuation; c.HandoffsNow() != 0 || c.Position != 3 {
		s.Errorf("resumed by a person: %+v", c)
	}
	s.order(third, "say again")
	if c := s.meta(s.handOver(third)).Continuation; c.HandoffsNow() != 1 || c.Position != 4 {
		s.Errorf("handed over after that: %+v", c)
	}
}

// inThread is a call that a thread makes.
func inThread(id thread.ID) action.Caller {
	return action.Caller{InThread: true, Env: tool.Env{ThreadID: id}}
}

func isPredecessorError(err error) bool {
	_, is := errors.AsType[*store.PredecessorError](err)
	return is
}

// TestHandoffGivenUp: a successor whose thread ended otherwise is in nobody's
// chain and holds nothing, and the thread can be resumed.
func TestHandoffGivenUp(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello", "make")
	s.wantState(thread.Created, secondChild)
	if _, err := s.c.Threads.Sweep(s.ctx); err != nil {
		s.Error(err)
	}
	s.wantState(thread.Created, secondChild) // its thread lives
	s.order(first, "give-over")
	s.wantState(thread.Cancelled, secondChild)
	if p := s.row(secondChild).Outcome.Error; p.Code != recovery.CodeNotHandedOver || !strings.Contains(p.Message, string(first)) ||
		!strings.Contains(p.Message, "told to") {
		s.Errorf("problem %+v", p)
	}
	s.order(first, "complete")
	if got := s.chain(first); !slices.Equal(got, []thread.ID{first}) {
		s.Errorf("chain %v", got)
	}
	s.wantTree(root, store.TreeSpend{Threads: 3, Active: 1})
}

// TestKilledHandoff kills a thread at each step of handing over. At most one of
// the chain lives, whoever waits is told an end, and nothing stays reserved.
func TestKilledHandoff(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	undecided := []thread.Crashpoint{scheduler.CrashClaimed, continuation.CrashSuccessor, continuation.CrashHandedOver, continuation.CrashSeeded, continuation.CrashReady}
	for _, at := range slices.Concat(undecided, finish.Crashpoints(), []thread.Crashpoint{scheduler.CrashLaunched, scheduler.CrashRecorded}) {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			first := s.start("work", root)
			s.order(first, "say hello", "spend 5", "die-at "+string(at), "hand-over")
			<-s.puppet(first).gone
			c := s.controller()
			_, err := c.Threads.Sweep(s.ctx) // which comes to the successor first
			s.noError(err)
			c.Queue.DispatchAndLog(s.ctx, true, nil)
			if slices.Contains(undecided, at) {
				s.wantUndecided(c, first, at)
			} else {
				s.wantHandedOver(c, first)
			}
			s.wantTreeFree(root)
			s.order(root, "complete")
		})
	}
}

// wantUndecided: the thread died as any other, and the successor never was one.
func (s *scene) wantUndecided(c *Controller, first thread.ID, at thread.Crashpoint) {
	s.Helper()
	list, err := c.View.List(s.ctx, unfinished)
	if err != nil || list.Count != 1 {
		s.Errorf("active: %+v, %v", list.Threads, err)
	}
	r := s.wait(c, WaitAll, first).Results[first]
	if r.Status != thread.Error || r.Problem.Code != thread.CodeDied || r.ResolvedThreadID != "" {
		s.Errorf("waited for %+v", r)
	}
	if at == scheduler.CrashClaimed {
		return // nobody had heard of the successor
	}
	s.wantState(thread.Cancelled, secondChild)
	if p := s.row(secondChild).Outcome.Error; p.Code != recovery.CodeNotHandedOver {
		s.Errorf("problem %+v", p)
	}
}

// wantHandedOver: the successor continues.
func (s *scene) wantHandedOver(c *Controller, first thread.ID) {
	s.Helper()
	// A wait settles the dead one and moves the queue.
	waited := make(chan view.Result, 1)
	go func() {
		r, err := c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{first}, Timeout: giveUp})
		if err != nil {
			s.Error(err)
		}
		waited <- r.Results[first]
	}()
	s.order(secondChild, "claim", "spend 1", "complete")
	if r := <-waited; r.Status != thread.Completed || r.ResolvedThreadID != secondChild {
		s.Errorf("waited for %+v", r)
	}
	s.wantState(thread.Continued, first)
}

// wantTreeFree checks that nobody below holds money.
func (s *scene) wantTreeFree(root thread.ID) {
	s.Helper()
	_, tree, err := s.c.Threads.Store.Tree(s.ctx, root)
	if err != nil || tree.Reserved != 0 || tree.Active != 1 {
		s.Errorf("tree %+v, %v", tree, err)
	}
}
