package control

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestHandoffBelowHandedOver: a thread whose parent has handed over hands over all
// the same, with what it has left, though the settings want the full limits.
func TestHandoffBelowHandedOver(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {limits: fresh}\n")
	root := s.start("idle", "")
	parent := s.start("idle", root)
	child := s.start("work", parent) // has 0.01 dollars
	s.order(child, "say hello", "spend 4000")
	after := s.handOver(parent)
	next := s.handOver(child)
	if got := s.meta(next).Limits.Spend; got != 6000 {
		s.Errorf("the successor has %d", got)
	}
	s.order(next, "spend 1000", "complete")
	s.order(after, "spend 10", "complete")
	s.wantTree(root, store.TreeSpend{Actual: 5010, Threads: 5, Active: 1})
	if b, err := s.c.Threads.Store.Budget(s.ctx, root); err != nil || b.Actual != 5010 {
		s.Errorf("the root's budget: %+v, %v", b, err)
	}
}

// TestHandoffIsVouchedFor: neither a thread.json of another thread nor words that
// nobody signed come to the successor, and nothing is left behind.
func TestHandoffIsVouchedFor(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *scene, id, other thread.ID)
		says   string
	}{
		"thread.json of another": {func(s *scene, id, other thread.ID) {
			s.noError(os.WriteFile(s.folder(id).Meta(), []byte(s.read(s.folder(other).Meta())), 0o600))
		}, "is that of"},
		"changed words": {func(s *scene, id, _ thread.ID) {
			path := s.folder(id).Transcript()
			s.noError(os.WriteFile(path, []byte(strings.Replace(s.read(path), "hello", "other", 1)), 0o600))
		}, "altered"},
		"added words": {func(s *scene, id, other thread.ID) {
			path := s.folder(id).Transcript()
			first, _, _ := strings.Cut(s.read(s.folder(other).Transcript()), "\n")
			forged := strings.NewReplacer(string(other), string(id), `"seq":1,`, `"seq":4,`).Replace(first)
			s.noError(os.WriteFile(path, []byte(s.read(path)+forged+"\n"), 0o600))
		}, "nobody signed"},
		"words that are gone": {func(s *scene, id, _ thread.ID) {
			path := s.folder(id).Transcript()
			before := s.read(path)
			s.order(id, "say more")
			s.noError(storetest.As(s.c.Threads.Store).RecordCost(s.ctx, id, thread.Cost{Turns: 2}, 0))
			s.noError(os.WriteFile(path, []byte(before), 0o600))
		}, "1 of 2 turns are left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSignedScene(t)
			id, other := s.start("work", ""), s.start("idle", "")
			s.order(id, "say hello")
			s.order(other, "say something else")
			request := handoff.Request{ThreadID: id, Ceiling: 2000}
			c.change(s, id, other)
			if _, err := s.c.Continue.MakeSuccessor(s.ctx, request); err == nil || !strings.Contains(err.Error(), c.says) {
				s.Errorf("handed over with %v", err)
			}
			if list, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil || list.Count != 2 {
				s.Errorf("threads %+v, %v", list.Threads, err)
			}
		})
	}
}

// TestNeverContinued: a thread that was to continue another and never came to it
// is not resumed in its place, and to stop it stops nobody else.
func TestNeverContinued(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello", "make", "give-over")
	s.wantState(thread.Cancelled, secondChild)
	for _, state := range []string{"runs", "has ended"} {
		_, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: secondChild, Message: "go on"})
		if code(err) != tool.CodeUnsupported || !strings.Contains(err.Error(), "never came to continue "+string(first)) {
			s.Errorf("the thread before %s: %v", state, err)
		}
		if state == "runs" {
			s.order(first, "complete")
			<-s.puppet(first).gone
		}
	}
	// One that is late to resume the thread, beside the one that does.
	late, _, err := store.Register(s.ctx, s.c.Threads.Store, store.NewThread{
		Kind: thread.KindDirective, Directive: "work", ContinuationOf: first, Now: testTime,
	}, nil)
	s.noError(err)
	next := s.resume(first).NewThreadID
	for _, id := range []thread.ID{late.ThreadID, secondChild} {
		stopped, err := s.c.Stop.Cancel(s.ctx, id)
		if err != nil || !stopped.Success || len(stopped.Receipts) != 1 || stopped.Receipts[0].ThreadID != id {
			s.Errorf("stopped %+v, %v", stopped, err)
		}
	}
	s.wantState(thread.Running, next, root)
}

// TestResumeIsJudged: the rights of a thread are held against the settings as they are
// when it is resumed.
func TestResumeIsJudged(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("directives/risky.md", permits("<execute><tool>rye.bash</tool></execute>"))
	id := s.start("risky", "")
	s.order(id, "say hello", "complete")
	next := s.resume(id).NewThreadID
	if w := s.meta(next).Warnings; len(w) != 1 || !strings.Contains(w[0], "elevated") {
		s.Errorf("warnings %q", w)
	}
	s.order(next, "complete")
	s.write(riskFile, "risk_levels: {elevated: {policy: block}}\n")
	if _, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: id, Message: "go on"}); code(err) != tool.CodePermissionDenied {
		s.Errorf("resumed with %v", err)
	}
}

// TestResumeNeedsTheRightToStart: a thread may not go on by itself with what a
// hook of the program has started below it.
func TestResumeNeedsTheRightToStart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("directives/meek.md", fmt.Sprintf(directive, "meek", "", ""))
	meek := s.start("meek", "")
	started, err := s.byHook("work", meek, action.HookCall{Exempt: true})
	s.noError(err)
	child := started.ThreadID
	s.order(child, "claim", "say hello", "complete")
	req := continuation.ResumeRequest{ThreadID: child, Message: "go on", From: meek}
	if _, err := s.c.Continue.Resume(s.ctx, req); code(err) != tool.CodePermissionDenied {
		s.Errorf("resumed with %v", err)
	}
	caller := inThread(meek)
	caller.Hook = &action.HookCall{Exempt: true}
	if _, err := OfOperations(s.c).Operate(s.ctx, caller, "resume_thread", tool.Object(`{"thread_id":"`+string(child)+`","message":"go on"}`)); err != nil {
		s.Errorf("for a hook of the program: %v", err)
	}
}

// TestResumeSpendsItsOwn: a thread resumes out of its own budget, and not out of
// that of a thread which a person has resumed above the one it asks for.
func TestResumeSpendsItsOwn(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	asks := s.start("idle", "")
	middle := s.start("idle", asks)
	parent := s.start("idle", middle)
	child := s.start("work", parent)
	s.order(child, "say hello", "complete")
	s.order(parent, "say hello", "complete")
	s.order(middle, "complete")
	persons := s.resume(parent).NewThreadID
	if got := s.row(persons).ParentID; got != "" {
		s.Fatalf("it is a child of %s", got)
	}
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: child, Message: "go on", From: asks})
	s.noError(err)
	if got := s.row(resumed.NewThreadID).ParentID; got != asks || s.reserved(persons) != 0 {
		s.Errorf("its parent is %s, and %d are held", got, s.reserved(persons))
	}
}

// TestCircleOfPredecessors: threads that wait for each other to hand over, which
// only a damaged registry has, end.
func TestCircleOfPredecessors(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ids := []thread.ID{"work-1", "work-2", "work-3"}
	before := map[thread.ID]thread.ID{ids[0]: ids[1], ids[1]: ids[0], ids[2]: ids[2]}
	var rows []store.Restored
	for _, id := range ids {
		s.noError(s.folder(id).Make())
		rows = append(rows, store.Restored{Record: thread.Record{
			ThreadID: id, Kind: thread.KindDirective, Directive: "work", Status: thread.Created, ContinuationOf: before[id],
			CreatedAt: testTime, UpdatedAt: testTime, LastUsed: testTime, QueuedAt: testTime,
		}})
	}
	if _, err := s.c.Threads.Store.Restore(s.ctx, rows); err != nil {
		s.Fatal(err)
	}
	if _, err := s.c.Threads.Sweep(s.ctx); err != nil {
		s.Error(err)
	}
	for _, id := range ids {
		if rec := s.row(id); rec.Status != thread.Cancelled || rec.Outcome.Error.Code != recovery.CodeNotHandedOver {
			s.Errorf("%s: %+v", id, rec)
		}
	}
}

// TestResumedFromFurtherBelow: a thread that hands over tells its successor of a
// grandchild that it has resumed, which is its child now.
func TestResumedFromFurtherBelow(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first := s.start("idle", "")
	middle := s.start("idle", first)
	below := s.start("work", middle)
	s.order(below, "say hello", "complete")
	s.order(middle, "complete")
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: below, Message: "go on", From: first})
	s.noError(err)
	again := s.start("work", first)
	s.order(again, "say hello", "complete")
	s.resume(again)
	children, err := s.c.Continue.StartedBy(s.ctx, []thread.Record{s.row(first)})
	s.noError(err)
	var ids []thread.ID
	for _, child := range children {
		ids = append(ids, child.ThreadID)
	}
	slices.Sort(ids)
	want := []thread.ID{middle, resumed.NewThreadID, again}
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		s.Errorf("children %v, want %v", ids, want)
	}
}

// TestRebuiltMoneyOfAChain: after the ledger was lost, what a thread handed over
// belongs to its successor alone.
func TestRebuiltMoneyOfAChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first := s.start("work", "")
	s.order(first, "say hello", "spend 300")
	second := s.handOver(first)
	s.order(second, "say hello", "spend 200")
	third := s.handOver(second)
	want := map[thread.ID]store.Budget{}
	for _, id := range []thread.ID{first, second, third} {
		b, err := s.c.Threads.Store.Budget(s.ctx, id)
		s.noError(err)
		want[id] = b
	}
	s.rebuild()
	for id, b := range want {
		got, err := s.c.Threads.Store.Budget(s.ctx, id)
		if err != nil || got.MaxSpend != b.MaxSpend || got.Own != b.Own || got.Active != b.Active || got.Remaining() != b.Remaining() {
			s.Errorf("%s has %+v, %v; before it was lost: %+v", id, got, err, b)
		}
	}
}

// TestRequestKeyOfAChain: a successor is told of what the thread before has
// started under a key, and does not start it again; that of a stranger is another.
func TestRequestKeyOfAChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first, stranger := s.start("idle", ""), s.start("idle", "")
	fork := func(id thread.ID) view.Started {
		s.Helper()
		got, err := Threads{s.c}.Start(s.ctx, inThread(id), action.StartRequest{Directive: "work", RequestKey: "k", Async: true})
		s.noError(err)
		return got.(view.Started)
	}
	child := fork(first).ThreadID
	second := s.handOver(first)
	if again := fork(second); again.ThreadID != child || !again.Existing {
		s.Errorf("the successor has started %+v, after %s", again, child)
	}
	if other := fork(stranger); other.ThreadID == child || other.Existing {
		s.Errorf("a stranger has started %+v", other)
	}
}

func samePlace(a, b records.Source) bool { return a.Where() == b.Where() }

// TestForgedLinkTellsNothing: a change that somebody has made in the transcript of
// an earlier thread of a chain is not told as a fact to the next.
func TestForgedLinkTellsNothing(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	first := s.start("work", "")
	s.order(first, "say hello")
	second := s.handOver(first)
	chain := []thread.Record{s.row(first), s.row(second)}
	both := []records.Source{s.c.Threads.Transcript(first), s.c.Threads.Transcript(second)}
	if got, err := s.c.Continue.In(s.c.Settings.Begin()).Genuine(s.ctx, chain); err != nil || !slices.EqualFunc(got, both, samePlace) {
		t.Fatalf("genuine are %v, %v", got, err)
	}
	path := s.folder(first).Transcript()
	s.noError(os.WriteFile(path, []byte(strings.Replace(s.read(path), "hello", "other", 1)), 0o600))
	if got, err := s.c.Continue.In(s.c.Settings.Begin()).Genuine(s.ctx, chain); err != nil || !slices.EqualFunc(got, both[1:], samePlace) {
		t.Errorf("genuine are %v, %v", got, err)
	}
}
