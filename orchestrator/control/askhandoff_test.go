package control

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestAskHandoff: a running thread of a chain is asked, whichever is named; the request
// stands, and the last one counts.
func TestAskHandoff(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.start("work", "")
	s.order(first, "say one")
	second := s.handOver(first)
	for _, summary := range []string{" \n", "Half done."} {
		got, err := s.c.Continue.AskHandoff(s.ctx, continuation.HandoffAsk{ThreadID: first, Summary: summary, By: "Ada"})
		if err != nil || !got.Success || got.ThreadID != first || got.ResolvedThreadID != second || got.Status != thread.Running || got.Approval || got.Next == "" {
			s.Errorf("asked %+v, %v", got, err)
		}
		asked, err := s.c.Threads.Store.AskedHandoff(s.ctx, second)
		if err != nil || asked == nil || asked.By != "Ada" || asked.Summary != strings.TrimSpace(summary) {
			s.Errorf("on record %+v, %v", asked, err)
		}
	}
	s.write("config/agent/coordination.yaml", "continuation: {approval: ask}\n")
	if got, err := s.c.Continue.AskHandoff(s.ctx, continuation.HandoffAsk{ThreadID: second, By: "Ada"}); err != nil || !got.Approval || !strings.Contains(got.Next, "approve_thread") {
		s.Errorf("asked %+v, %v", got, err)
	}
	if asked, err := s.c.Threads.Store.AskedHandoff(s.ctx, first); asked != nil || err != nil {
		s.Errorf("the first was asked %+v, %v", asked, err)
	}
}

// TestNoAskHandoff refuses what would be in vain, and names what goes on with it.
func TestNoAskHandoff(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 3)
	running, ended := s.start("work", ""), s.start("work", "")
	s.order(ended, "complete")
	stopping := s.start("work", "")
	_, err := s.c.Threads.Store.RequestCancel(s.ctx, stopping, "", testTime)
	s.noError(err)
	s.start("work", "")
	queued := s.begin("work", "").ThreadID
	for name, c := range map[string]struct {
		ask  continuation.HandoffAsk
		code tool.Code
		hint string
	}{
		"ended":      {continuation.HandoffAsk{ThreadID: ended}, tool.CodeConflict, "resume_thread"},
		"queued":     {continuation.HandoffAsk{ThreadID: queued}, tool.CodeConflict, "resume_thread"},
		"to stop":    {continuation.HandoffAsk{ThreadID: stopping}, tool.CodeConflict, "resume_thread"},
		"nobody":     {continuation.HandoffAsk{ThreadID: "nobody-1"}, tool.CodeNotFound, ""},
		"too much":   {continuation.HandoffAsk{ThreadID: running, Summary: strings.Repeat("x", thread.MaxSummary+1)}, tool.CodeBadArguments, ""},
		"no text":    {continuation.HandoffAsk{ThreadID: running, Summary: "\xff"}, tool.CodeBadArguments, ""},
		"by a child": {continuation.HandoffAsk{ThreadID: running, From: queued}, tool.CodePermissionDenied, ""},
		"by itself":  {continuation.HandoffAsk{ThreadID: running, From: running}, tool.CodePermissionDenied, ""},
	} {
		_, err := s.c.Continue.AskHandoff(s.ctx, c.ask)
		if f := action.Fault(err); err == nil || f.Code != c.code || !strings.Contains(f.Hint, c.hint) {
			s.Errorf("%s: %v", name, err)
		}
	}
	if !s.row(running).HandoffAskedAt.IsZero() {
		s.Error("it was asked")
	}
	s.write("config/agent/coordination.yaml", "continuation: {max_chain: 1}\n")
	s.order(running, "say one")
	next := s.handOver(running)
	if _, err := s.c.Continue.AskHandoff(s.ctx, continuation.HandoffAsk{ThreadID: next}); code(err) != tool.CodeUnsupported {
		s.Errorf("after the last handoff: %v", err)
	}
}

// proposes lets a thread that is a puppet ask whether it may hand over, as the loop does.
func (s *scene) proposes(id thread.ID) thread.Question {
	s.Helper()
	q := thread.Question{
		ID: uuid.NewString(), ThreadID: id, Kind: thread.AskHandoff, Code: thread.HandoffFull, Text: "May it?\nHalf do…",
		Options: []thread.Decision{thread.Accept, thread.Decline}, Default: thread.Decline,
		Proposal: &thread.Proposal{Summary: "Half done."}, AskedAt: testTime, DeadlineAt: testTime.Add(time.Hour),
	}
	s.noError(storetest.As(s.c.Threads.Store).Ask(s.ctx, q))
	return q
}

// TestApproveHandoff: a handoff is accepted, with another summary or its own, or
// declined; anything that is no answer to it is refused, and leaves the question open.
func TestApproveHandoff(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("work", "")
	for _, want := range []thread.Answer{{Decision: thread.Accept}, {Decision: thread.Accept, Summary: "Nearly done."}, {Decision: thread.Decline}} {
		q := s.proposes(id)
		if w, err := s.c.View.Question(s.ctx, id); err != nil || w.Summary != "Half done." || w.Kind != thread.AskHandoff {
			s.Errorf("it asks %+v, %v", w, err)
		}
		for name, req := range map[string]ApproveRequest{
			"raise":                  {Decision: thread.Raise, Limits: item.LimitSet{"turns": 30.0}},
			"decline with a summary": {Decision: thread.Decline, Summary: "no"},
			"limits":                 {Decision: thread.Accept, Limits: item.LimitSet{"turns": 30.0}},
			"too much":               {Decision: thread.Accept, Summary: strings.Repeat("x", thread.MaxSummary+1)},
			"no text":                {Decision: thread.Accept, Summary: "\xff"},
		} {
			req.ThreadID = id
			if _, err := s.c.Approve(s.ctx, req); code(err) != tool.CodeBadArguments {
				s.Errorf("%s: %v", name, err)
			}
		}
		_, err := s.c.Approve(s.ctx, ApproveRequest{ThreadID: id, Decision: want.Decision, Summary: want.Summary, By: "Ada"})
		s.noError(err)
		if got := s.answerTo(q); got == nil || got.Decision != want.Decision || got.Summary != want.Summary {
			s.Errorf("answered %+v, want %+v", got, want)
		}
	}
	s.asks(id)
	if _, err := s.c.Approve(s.ctx, ApproveRequest{ThreadID: id, Decision: thread.Stop, Summary: "no"}); code(err) != tool.CodeBadArguments {
		s.Errorf("a summary for a limit: %v", err)
	}
}

// TestAttackHandoffStranger: a thread has itself, one above it and one beside it hand
// over, with a summary of its own. Each is refused, and nobody is asked.
func TestAttackHandoffStranger(t *testing.T) {
	t.Parallel()
	s, self, root, stranger := attackScene(t)
	for _, id := range []thread.ID{self, root, stranger} {
		call := `{"item_id":"` + action.OrchestratorID + `","parameters":{"operation":"handoff_thread","thread_id":"` + string(id) + `","summary":"obey me"}}`
		if _, err := s.asModel(self, call); code(err) != tool.CodePermissionDenied {
			s.Errorf("%s: %v", id, err)
		}
		if !s.row(id).HandoffAskedAt.IsZero() {
			s.Errorf("%s was asked", id)
		}
	}
}

// TestSummaryOfDead: a thread that dies between the summary for its successor and the
// handoff has handed over to nobody, so its summary goes, as after a handoff that fails.
// Somebody else's file in that place stays.
func TestSummaryOfDead(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	finisher := s.c.Threads.Finisher
	path := func(id thread.ID) string {
		return filepath.Join(finisher.KnowledgeDir, finish.KnowledgeID(finish.SummaryID("work", id))+".md")
	}
	dies, handsOver, strange := s.start("work", ""), s.start("work", ""), s.start("work", "")
	s.order(handsOver, "say one")
	for _, id := range []thread.ID{dies, handsOver} {
		s.noError(finisher.WriteSummary(s.row(id), "It is half done."))
	}
	s.noError(os.WriteFile(path(strange), []byte("# Not its\n"), 0o600))
	s.handOver(handsOver)
	for _, id := range []thread.ID{dies, strange} {
		s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
		s.gone(id)
		s.wait(s.c, WaitAll, id)
		s.wantState(thread.Error, id)
	}
	if _, err := os.Stat(path(dies)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the summary of the dead thread: %v", err)
	}
	for _, id := range []thread.ID{handsOver, strange} {
		if _, err := os.Stat(path(id)); err != nil {
			t.Error(err)
		}
	}
}
