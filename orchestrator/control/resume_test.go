package control

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// resume resumes a thread and lets the new one claim its row.
func (s *scene) resume(id thread.ID) continuation.Resumed {
	s.Helper()
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: id, Message: "go on"})
	s.noError(err)
	s.order(resumed.NewThreadID, "claim")
	return resumed
}

// TestResume resumes a child of a thread that runs: it is a sibling, with the
// conversation, a budget and a place in the count of its own.
func TestResume(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello", "spend 7", "complete")
	got := s.resume(first)
	second := got.NewThreadID
	if !got.Success || !got.Resumed || got.OldThreadID != first || got.OriginalThreadID != nil || got.ResolvedThreadID != first ||
		got.Directive != "work" || got.ReconstructedTurns != 1 || got.NewThreadResult.ThreadID != second || got.Next == "" || got.Shortened {
		s.Errorf("resumed %+v", got)
	}
	rec, meta, before := s.row(second), s.meta(second), s.meta(first)
	if rec.ParentID != root || rec.ChainRootID != first || s.row(root).SpawnCount != 2 || s.row(first).Status != thread.Completed {
		s.Errorf("row %+v", rec)
	}
	if c := meta.Continuation; c.Via != thread.ViaResume || c.Message != "go on" || c.Position != 2 || c.Messages != 2 ||
		meta.Limits != before.Limits || !slices.Equal(meta.Capabilities, before.Capabilities) || meta.Cost != (thread.Cost{}) || meta.Outcome != nil {
		s.Errorf("thread.json %+v", meta)
	}
	if said, err := s.c.Threads.Messages(second); err != nil || len(said) != 2 || said[1].Blocks[0].Text != "answer to hello" {
		s.Errorf("it begins with %+v, %v", said, err)
	}
	s.order(second, "say more", "spend 2", "complete")
	if r := s.wait(s.c, WaitAll, first).Results[first]; r.ResolvedThreadID != second || r.Result != "result of "+string(second) {
		s.Errorf("waited for %+v", r)
	}
	if v := s.verify(first); !v.Verified || !strings.Contains(s.read(s.folder(first).Transcript()), `"message_preview":"go on"`) {
		s.Errorf("the resumed thread: %+v", v)
	}
	s.order(root, "spend 1")
	s.wantTree(root, store.TreeSpend{Actual: 10, Threads: 3, Active: 1})
	again := s.resume(first)
	if again.OldThreadID != second || again.OriginalThreadID != any(first) {
		s.Errorf("resumed %+v", again)
	}
	if chain, err := s.c.View.GetChain(s.ctx, second); err != nil || chain.Length != 3 || chain.Chain[2].Via != thread.ViaResume {
		s.Errorf("chain %+v, %v", chain, err)
	}
}

// TestResumeAfterParent: when the parent has ended, the new thread is a root with
// the rights it had and no more; or the child of the thread that asks for it.
func TestResumeAfterParent(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	top := s.start("idle", "")
	parent := s.start("idle", top)
	first, other := s.start("work", parent), s.start("work", parent)
	for _, id := range []thread.ID{first, other} {
		s.order(id, "say hello", "complete")
	}
	s.order(parent, "complete")
	if _, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: first, Message: "go on", From: parent}); code(err) != "parent_gone" {
		s.Errorf("asked by a thread that has ended: %v", err)
	}
	next := s.resume(first).NewThreadID
	if rec, meta := s.row(next), s.meta(next); rec.ParentID != "" || len(meta.Ceiling) != 2 || meta.ParentID != "" {
		s.Errorf("row %+v, ceiling %v", rec, meta.Ceiling)
	}
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: other, Message: "go on", From: top})
	s.noError(err)
	if rec := s.row(resumed.NewThreadID); rec.ParentID != top || s.reserved(top) == 0 {
		s.Errorf("row %+v, %d held", rec, s.reserved(top))
	}
}

// TestResumeAfterHandover: the limits are those that the chain began with.
func TestResumeAfterHandover(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first := s.start("work", "")
	s.order(first, "say hello")
	second := s.handOver(first)
	s.order(second, "say more", "complete")
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{
		ThreadID: first, Message: "go on", Limits: item.LimitSet{"turns": 3.0},
	})
	s.noError(err)
	want := s.meta(first).Limits
	want.Turns = 3
	if got := s.meta(resumed.NewThreadID); got.Limits != want || got.Inputs[handoff.InputPreviousThread] != string(second) {
		s.Errorf("limits %+v, want %+v; inputs %v", got.Limits, want, got.Inputs)
	}
}

// TestResumeTooLong: of a conversation that does not fit the new thread gets what a
// handoff gives.
func TestResumeTooLong(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {resume_ceiling_tokens: 1000}\n")
	s.write("config/agent/providers/scripted.yaml", "models: {scripted-fast: {context_window: 500}}\n")
	first := s.start("work", "")
	s.order(first, "say "+strings.Repeat("long words ", 400), "say last words", "complete")
	resumed := s.resume(first)
	said, err := s.c.Threads.Messages(resumed.NewThreadID)
	if err != nil || !resumed.Shortened || resumed.ReconstructedTurns != 2 || !strings.Contains(said[0].Blocks[0].Text, "Where the work stands") ||
		!strings.Contains(said[0].Blocks[0].Text, "<directive name=") ||
		!strings.Contains(said[len(said)-1].Blocks[0].Text, "last words") {
		s.Errorf("resumed %+v with %+v, %v", resumed, said, err)
	}
}

// TestTooLongByTheCount: the provider's count of a conversation, with what came after that,
// decides whether it fits, in copies up to a turn and of a copy that rests too.
func TestTooLongByTheCount(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {resume_ceiling_tokens: 1000}\n")
	s.write("config/agent/providers/scripted.yaml", "models: {scripted-fast: {context_window: 20000}}\n")
	long := "say " + strings.Repeat("long words ", 800) // about 4 400 tokens with their answer
	for name, c := range map[string]struct {
		orders []string
		model  string
		at     *int
		rests  bool
		short  bool
	}{
		"what came after the count":       {orders: []string{"count 15000", long}, short: true},
		"there is room":                   {orders: []string{"count 12000", long}},
		"what was before it is in it":     {orders: []string{long, long, long, "count 9000"}},
		"nobody has counted":              {orders: []string{long, long, long, long}},
		"nobody has, and it is too long":  {orders: []string{long, long, long, long, long}, short: true},
		"up to the turn that was counted": {orders: []string{"count 17900", "say on"}, at: turn(1)},
		"up to a turn behind it":          {orders: []string{"count 15000", long, "say on"}, at: turn(2), short: true},
		"of a copy that rests":            {orders: []string{"count 15000", long}, rests: true, short: true},
		"by another model":                {orders: []string{long, long, long, long, long, "count 9000"}, model: "scripted/scripted-general"},
	} {
		first := s.start("work", "")
		s.order(first, append(c.orders, "complete")...)
		var short bool
		switch {
		case c.at != nil:
			short = s.fork(continuation.ForkRequest{ThreadID: first, Message: "go on", AtTurn: c.at}).Shortened
		case c.rests:
			first = s.fork(continuation.ForkRequest{ThreadID: first}).ThreadID
			fallthrough
		default:
			resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: first, Message: "go on", Model: c.model})
			s.noError(err)
			short = resumed.Shortened
		}
		if short != c.short {
			s.Errorf("%s: shortened: %t", name, short)
		}
	}
}

// TestNoResume refuses what cannot be resumed, says what to call instead, and
// leaves nothing behind.
func TestNoResume(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	running := s.start("work", "")
	fresh := s.start("work", "")
	s.order(fresh, "complete")
	changed := s.start("work", "")
	s.order(changed, "say hello", "complete")
	<-s.puppet(changed).gone
	path := s.folder(changed).Transcript()
	s.noError(os.WriteFile(path, []byte(strings.Replace(s.read(path), "hello", "other", 1)), 0o600))
	good := s.start("work", "")
	s.order(good, "say hello", "complete")
	for name, c := range map[string]struct {
		request continuation.ResumeRequest
		code    tool.Code
		says    string
	}{
		"running":       {continuation.ResumeRequest{ThreadID: running, Message: "go on"}, "conflict", "is running"},
		"nobody":        {continuation.ResumeRequest{ThreadID: "nobody-1", Message: "go on"}, "not_found", "nobody-1"},
		"no words":      {continuation.ResumeRequest{ThreadID: good, Message: " \n"}, "bad_arguments", "empty"},
		"said nothing":  {continuation.ResumeRequest{ThreadID: fresh, Message: "go on"}, "unsupported", "nothing to resume"},
		"changed":       {continuation.ResumeRequest{ThreadID: changed, Message: "go on"}, "invalid_item", "does not verify"},
		"not below":     {continuation.ResumeRequest{ThreadID: good, Message: "go on", From: running}, "permission_denied", "not started below"},
		"unknown limit": {continuation.ResumeRequest{ThreadID: good, Message: "go on", Limits: item.LimitSet{"wishes": 3.0}}, "invalid_limits", "wishes"},
		"unknown model": {continuation.ResumeRequest{ThreadID: good, Message: "go on", Model: "nobody/nothing"}, "no_provider", "nothing"},
	} {
		if _, err := s.c.Continue.Resume(s.ctx, c.request); code(err) != c.code || !strings.Contains(err.Error(), c.says) {
			s.Errorf("%s: %v", name, err)
		}
	}
	s.noError(os.Remove(filepath.Join(s.project, ".ai", "directives", "work.md")))
	if _, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: good, Message: "go on"}); code(err) != "not_found" {
		s.Errorf("without its directive: %v", err)
	}
	if list, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil || list.Count != 4 {
		s.Errorf("threads %+v, %v", list.Threads, err)
	}
}

// TestResumeAtOnce lets several resume the same thread: one does, and the others
// hear of a conflict and leave nothing.
func TestResumeAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello", "complete")
	const many = 4
	servers := make([]*Controller, many)
	for i := range servers {
		servers[i] = s.controller()
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var won []thread.ID
	for _, c := range servers {
		group.Go(func() {
			resumed, err := c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: first, Message: "go on"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won = append(won, resumed.NewThreadID)
			case code(err) != "conflict":
				s.Errorf("refused with %v", err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 || s.row(first).ContinuationThreadID != won[0] {
		s.Fatalf("resumed by %v, continued by %s", won, s.row(first).ContinuationThreadID)
	}
	s.order(won[0], "claim", "complete")
	rows, err := s.c.Threads.Store.Descendants(s.ctx, root)
	s.noError(err)
	for _, rec := range rows {
		if rec.ContinuationOf != "" && rec.ThreadID != won[0] {
			s.Errorf("one that was late: %+v", rec)
		}
	}
	s.wantTreeFree(root)
}

// TestCancelledBeforeItContinues: a thread that was to continue another, and is cancelled
// before it came to that, is not taken for the one that does.
func TestCancelledBeforeItContinues(t *testing.T) {
	t.Parallel()
	for name, resume := range map[string]func(s *scene, first thread.ID){
		"who resumes goes away": func(s *scene, first thread.ID) {
			ctx, leave := context.WithCancel(s.ctx)
			defer leave()
			s.c.Threads.Crashpoints = func(at thread.Crashpoint) {
				if at == scheduler.CrashDescribed {
					_, err := s.c.Threads.Store.RequestCancel(s.ctx, secondChild, "", testTime)
					s.noError(err)
					leave()
				}
			}
			if resumed, err := s.c.Continue.Resume(ctx, continuation.ResumeRequest{ThreadID: first, Message: "go on"}); err == nil {
				s.Fatalf("resumed as %+v", resumed)
			}
			s.c.Threads.Crashpoints = nil
		},
		"who resumes is dead": func(s *scene, first thread.ID) {
			s.dieAfter(scheduler.CrashDescribed, "resume", first)
			_, err := s.c.Threads.Store.RequestCancel(s.ctx, secondChild, "", testTime)
			s.noError(err)
			_, err = s.c.Threads.Sweep(s.ctx)
			s.noError(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			first := s.start("work", root)
			s.order(first, "say hello", "complete")
			s.gone(first)
			resume(s, first)
			if rec := s.row(secondChild); rec.Outcome == nil || rec.Status != thread.Cancelled || rec.Outcome.Error.Code != recovery.CodeNotHandedOver {
				s.Errorf("it has ended with %+v", rec.Outcome)
			}
			found, err := s.c.Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil)
			if s.noError(err); len(found.Findings) > 0 {
				s.Errorf("it has left %+v", found.Findings)
			}
			again := s.resume(first)
			s.order(again.NewThreadID, "complete")
		})
	}
}

// TestKilledResumer kills who resumes after each step. Nothing is held, and the
// thread is either resumed or can be.
func TestKilledResumer(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{scheduler.CrashClaimed, scheduler.CrashRegistered, scheduler.CrashPrepared, scheduler.CrashDescribed, scheduler.CrashLinked, scheduler.CrashQueued, scheduler.CrashLaunched, scheduler.CrashRecorded} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			first := s.start("work", root)
			s.order(first, "say hello", "complete")
			s.dieAfter(at, "resume", first)
			s.c.Queue.DispatchAndLog(s.ctx, true, nil)
			if at == scheduler.CrashQueued || at == scheduler.CrashLaunched || at == scheduler.CrashRecorded {
				s.order(secondChild, "claim", "complete")
				if r := s.wait(s.c, WaitAll, first).Results[first]; r.Status != thread.Completed || r.ResolvedThreadID != secondChild {
					s.Errorf("waited for %+v", r)
				}
				s.wantTreeFree(root)
				return
			}
			_, err := s.c.Threads.Sweep(s.ctx)
			s.noError(err)
			if at != scheduler.CrashClaimed {
				want := map[bool]thread.State{false: thread.Cancelled, true: thread.Error}[at == scheduler.CrashLinked]
				s.wantState(want, secondChild)
			}
			s.wantTreeFree(root)
			if again := s.resume(first); again.ReconstructedTurns != 1 || (again.OldThreadID == first) == (at == scheduler.CrashLinked) {
				s.Errorf("resumed %+v", again)
			}
		})
	}
}

// TestResumeInASmallWindow: system prompt and tools count also where nobody has counted, and
// leave a shortened conversation half of the rest.
func TestResumeInASmallWindow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/providers/scripted.yaml", "models: {scripted-fast: {context_window: 8192}}\n")
	const tools = 4000 // tokens
	s.c.Planner.Palette = func(opening.Wanted) (palette.Palette, error) {
		return palette.Palette{Entries: []palette.Entry{{Name: "t", Definition: tool.Definition{Description: strings.Repeat("long", tools)}}}}, nil
	}
	long := "say " + strings.Repeat("long words ", 650) // about 3 600 tokens with their answer
	for name, c := range map[string]struct {
		orders []string
		short  bool
	}{
		"counted":            {[]string{"say one", long, "count 7500"}, true},
		"nobody has counted": {[]string{long}, true},
		"there is room":      {[]string{"say one"}, false},
	} {
		first := s.start("work", "")
		s.order(first, append(c.orders, "complete")...)
		resumed := s.resume(first)
		said, err := s.c.Threads.Messages(resumed.NewThreadID)
		s.noError(err)
		if used := handoff.Tokens(said...); resumed.Shortened != c.short || used > (8192-tools)/2 {
			s.Errorf("%s: shortened %t, to %d tokens", name, resumed.Shortened, used)
		}
	}
}
