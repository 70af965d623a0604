package loop

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// approving is a house whose threads ask before they hand over, and have something to
// sum up.
func approving(t *testing.T) (*house, *maker) {
	h := asking(t)
	h.settings.Continuation.Approval = config.ApprovalAsk
	h.sums(thread.Outcome{State: thread.Completed, Result: "It is half done."})
	return h, handsOver(h)
}

// summaryFile is what there is as the summary of a thread; empty: nothing.
func (h *house) summaryFile(id thread.ID) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.finisher.KnowledgeDir, finish.KnowledgeID(finish.SummaryID("test/task", id))+".md"))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return string(text)
}

// TestApproval: a thread that is about to hand over says what that comes to, and does
// as it is told. A summary that was written for a handoff that does not take place is taken back.
func TestApproval(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		answers []thread.Answer
		script  string
		summary string // that the successor is given
		asked   int
		state   thread.State
		code    string
	}{
		"accepted": {
			answers: []thread.Answer{{Decision: thread.Accept}}, summary: "It is half done.", asked: 1, state: thread.Continued,
		},
		"edited": {
			answers: []thread.Answer{{Decision: thread.Accept, Summary: "  It is nearly done.\n"}}, summary: "It is nearly done.", asked: 1, state: thread.Continued,
		},
		"declined": {answers: []thread.Answer{{Decision: thread.Decline}}, asked: 1, state: thread.Completed},
		"declined, and once more when it is full": {
			answers: []thread.Answer{{Decision: thread.Decline}, {Decision: thread.Decline}}, script: fullBehind, asked: 2, state: thread.Error, code: "context_full",
		},
		"accepted when it is full": {
			answers: []thread.Answer{{Decision: thread.Decline}, {Decision: thread.Accept}}, script: fullBehind, summary: "It is half done.", asked: 2, state: thread.Continued,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, m := approving(t)
			h.script(filling(nearlyFull))
			if c.script != "" {
				h.script(c.script)
			}
			rec, asked := h.answering(h.register(job{}), c.answers...)
			if rec.Status != c.state || len(asked) != c.asked || c.code != "" && rec.Outcome.Error.Code != c.code {
				t.Fatalf("%s %+v, asked %+v", rec.Status, rec.Outcome, asked)
			}
			q, p := asked[0], asked[0].Proposal
			if q.Kind != thread.AskHandoff || q.Code != thread.HandoffFull || q.Default != thread.Decline || p.Last ||
				!slices.Equal(q.Options, []thread.Decision{thread.Accept, thread.Decline}) {
				t.Errorf("asked %+v", q)
			}
			if p.Summary != "It is half done." || p.Tokens < nearlyFull || p.Window != 200_000 || p.Spend <= 0 || p.Expected <= 0 || p.Expected > p.Spend || p.Turns != 9 || p.Left <= 0 {
				t.Errorf("proposed %+v", p)
			}
			if last := asked[len(asked)-1].Proposal; last.Last != (c.asked == 2) {
				t.Errorf("proposed at last %+v", last)
			}
			if file := h.summaryFile(rec.ThreadID); strings.Contains(file, "\n"+c.summary+"\n") != (c.summary != "") || (file == "") != (c.summary == "") {
				t.Errorf("the summary is %q", file)
			}
			if c.summary == "" && len(m.requests) > 0 || c.summary != "" && (len(m.requests) != 1 || m.requests[0].Summary != c.summary || m.started != 1) {
				t.Errorf("asked for %+v, started %d times", m.requests, m.started)
			}
			told := events[transcript.QuestionAnswered](h, rec.ThreadID, thread.EventQuestionAnswered)
			if len(told) != c.asked || told[0].Decision != c.answers[0].Decision || told[0].By != "Ada" {
				t.Errorf("on record: %+v", told)
			}
			if c.code != "" && !strings.Contains(rec.Outcome.Error.Message, "declined by Ada") {
				t.Errorf("it ended with %+v", rec.Outcome.Error)
			}
		})
	}
}

// fullBehind is [filling] whose next call the provider refuses as too long.
const fullBehind = "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 179900, output_tokens: 100}}\n" +
	"  - error: {status: 400, type: invalid_request_error, code: context_length_exceeded, message: 'prompt is too long'}\n"

// TestDeclinedWithoutSummary: of a summary that could not be written a thread is warned
// when it has a successor, and not when somebody has declined the handoff.
func TestDeclinedWithoutSummary(t *testing.T) {
	t.Parallel()
	for decision, warned := range map[thread.Decision]bool{thread.Accept: true, thread.Decline: false} {
		h, _ := approving(t)
		h.sums(thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "tool_failed", Message: "no words"}})
		h.script(filling(nearlyFull))
		rec, asked := h.answering(h.register(job{}), thread.Answer{Decision: decision})
		if got := strings.Contains(strings.Join(rec.Outcome.Warnings, "\n"), "the successor has no summary"); got != warned {
			t.Errorf("%s: %s, warnings %q", decision, rec.Status, rec.Outcome.Warnings)
		}
		if len(asked) != 1 || !strings.Contains(asked[0].Text, "It has used 1 turn and ") {
			t.Errorf("%s: asked %+v", decision, asked)
		}
	}
}

// TestNobodyApproves: when nobody answers in time the thread does not hand over; and one
// that is stopped while it asks has left nothing.
func TestNobodyApproves(t *testing.T) {
	t.Parallel()
	h, m := approving(t)
	h.settings.OnLimit.DeadlineSeconds = 1e-6
	h.script(filling(nearlyFull))
	rec := h.run(job{})
	if rec.Status != thread.Completed || len(m.requests) > 0 || h.summaryFile(rec.ThreadID) != "" {
		t.Errorf("%s %+v, asked for %+v", rec.Status, rec.Outcome, m.requests)
	}
	h, m = approving(t)
	h.script(filling(nearlyFull))
	id := h.register(job{})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		h.askedBy(ctx, id)
		cancel(&thread.SignalError{Signal: "SIGTERM"})
	}()
	rec = h.end(ctx, id)
	open, err := h.store.Questions(t.Context(), store.QuestionFilter{ThreadID: id, Open: true})
	if rec.Status != thread.Cancelled || len(m.requests) > 0 || h.summaryFile(id) != "" || len(open) > 0 || err != nil {
		t.Errorf("%s %+v, asked for %+v, open %v, %v", rec.Status, rec.Outcome, m.requests, open, err)
	}
}

// TestApprovalFails: what fails behind an acceptance takes the summary back, to what
// was there before.
func TestApprovalFails(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "```yaml\nname: x\n```\n\nOf another time.\n"} {
		h, m := approving(t)
		m.fails = func(thread.ID) error { return store.ErrNoBudget }
		h.script(filling(nearlyFull))
		id := h.register(job{})
		if before != "" {
			h.write(".ai/knowledge/"+finish.KnowledgeID(finish.SummaryID("test/task", id))+".md", before)
		}
		was := h.summaryFile(id)
		rec, asked := h.answering(id, thread.Answer{Decision: thread.Accept, Summary: "Another."})
		if rec.Status != thread.Error || rec.Outcome.Error.Code != "context_full" || len(asked) != 1 {
			t.Errorf("%s %+v, asked %+v", rec.Status, rec.Outcome, asked)
		}
		if now := h.summaryFile(id); now != was {
			t.Errorf("the summary was %q, and is %q", was, now)
		}
	}
}

// onRequest lets the thread's first turn be followed by a request to hand over.
func (h *house) onRequest(r thread.HandoffRequest) {
	h.tools.act = func() error {
		running, _, err := h.store.List(h.t.Context(), store.Filter{States: []thread.State{thread.Running}})
		if err != nil {
			return err
		}
		r.By, r.At = "Ada", time.Now()
		return h.store.AskHandoff(h.t.Context(), running[0].ThreadID, r)
	}
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_act, input: {}}], usage: {input_tokens: 100, output_tokens: 10}}\n  - text: Done.\n")
}

// TestHandoffOnRequest: a thread that is asked to hand over does so after its turn, by
// the rules of every handoff; where it cannot, it goes on and says so.
func TestHandoffOnRequest(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	veto := inHooks("keep", "before_handoff", "", decides("abort", ", error: 'not today'"))
	for name, c := range map[string]struct {
		request thread.HandoffRequest
		change  func(*house, *maker)
		answers []thread.Answer
		state   thread.State
		summary string
		warns   string
	}{
		"alone":          {state: thread.Continued, summary: "It is half done."},
		"with a summary": {request: thread.HandoffRequest{Summary: "Look at b.txt."}, state: thread.Continued, summary: "Look at b.txt."},
		"with a secret in the summary": {
			request: thread.HandoffRequest{Summary: "It is abcdefgh-12345."}, state: thread.Continued, summary: "It is {secret:token}.",
			change: func(h *house, _ *maker) {
				h.change = func(r *run) { r.Secrets = secret.New(map[string]string{"token": "abcdefgh-12345"}) }
			},
		},
		"called off": {change: func(h *house, _ *maker) { h.hooks(veto) }, state: thread.Completed, warns: `Ada asked for a handoff: there was no handoff, because hook "keep" called it off: not today`},
		"fails":      {change: func(_ *house, m *maker) { m.fails = func(thread.ID) error { return store.ErrParentGone } }, state: thread.Completed, warns: "could not be made"},
		"too long a chain": {
			change: func(h *house, _ *maker) { h.settings.Continuation.MaxChain = 0 }, state: thread.Completed, warns: "max_chain",
		},
		"approved": {
			change: func(h *house, _ *maker) { h.settings.Continuation.Approval = config.ApprovalAsk }, state: thread.Continued,
			answers: []thread.Answer{{Decision: thread.Accept}}, summary: "It is half done.",
		},
		"declined": {
			change: func(h *house, _ *maker) { h.settings.Continuation.Approval = config.ApprovalAsk }, state: thread.Completed,
			answers: []thread.Answer{{Decision: thread.Decline}}, warns: "it was declined by Ada",
		},
		"nothing can continue it": {change: func(h *house, _ *maker) { h.maker = nil }, state: thread.Completed, warns: "nothing can continue it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, m := approving(t)
			h.settings.Continuation.Approval = config.ApprovalNone
			if c.change != nil {
				c.change(h, m)
			}
			h.onRequest(c.request)
			rec, asked := h.answering(h.register(job{}), c.answers...)
			if rec.Status != c.state || len(asked) != len(c.answers) {
				t.Fatalf("%s %+v, asked %+v", rec.Status, rec.Outcome, asked)
			}
			if len(asked) > 0 && (asked[0].Code != thread.HandoffAsked || !strings.Contains(asked[0].Text, "Ada has asked for it")) {
				t.Errorf("asked %+v", asked)
			}
			if warned := strings.Join(rec.Outcome.Warnings, "\n"); !strings.Contains(warned, c.warns) || (warned == "") != (c.warns == "") {
				t.Errorf("warnings %q", warned)
			}
			if c.state == thread.Continued && (m.requests[0].Summary != c.summary || !strings.Contains(h.summaryFile(rec.ThreadID), c.summary)) {
				t.Errorf("asked for %+v", m.requests)
			}
			if c.state != thread.Continued && h.summaryFile(rec.ThreadID) != "" {
				t.Errorf("a summary is left: %q", h.summaryFile(rec.ThreadID))
			}
		})
	}
}
