package loop

import (
	"context"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/guard"
)

// proposed ends the work until somebody has decided about a handoff: the time of the
// thread stands still meanwhile.
type proposed struct{ handover *handover }

func (*proposed) Error() string { return "a handoff was proposed, and nobody has decided about it" }

// ask has somebody decide about the handoff, and does it. It reports whether the
// thread has gone on without, and how that ended.
func (h *handover) ask(ctx context.Context) (ended, bool) {
	next, err := h.propose(ctx)
	if err == nil {
		return ended{handoff: next}, false
	}
	if done := h.without(ctx, err); done != nil {
		return *done, false
	}
	return h.timed(ctx, h.timeLeft(), h.turns), true
}

// propose poses the question and hands over when it is accepted. Else everything that
// was written is taken back, and the error says why there is no handoff.
func (h *handover) propose(ctx context.Context) (*thread.Handoff, error) {
	budget, err := h.Store.Budget(ctx, h.ID)
	if err != nil {
		return nil, h.takeBack(err)
	}
	h.clock.stop()
	answer, err := h.pose(ctx, h.question(budget))
	h.clock.start()
	switch {
	case err != nil:
		return nil, h.takeBack(err)
	case answer.Decision != thread.Accept:
		return nil, h.takeBack(&noHandoffError{why: &declinedError{by: answer.By}, advice: contextAdvice})
	}
	if edited := strings.TrimSpace(answer.Summary); edited != "" && edited != h.summary.text {
		if err := h.put(ctx, edited); err != nil {
			return nil, h.takeBack(&noHandoffError{why: fmt.Errorf("the summary that was given could not be written: %w", err), advice: contextAdvice})
		}
	}
	if err := h.checkpoint(h.Transcript.Checkpoint); err != nil { // a successor is made of what is signed
		return nil, h.takeBack(err)
	}
	h.Crashpoints.At(CrashEdited)
	return h.complete(ctx)
}

// shownSummary is how much of a summary stands in the text of a question, in bytes.
const shownSummary = 1500

// question is what somebody is asked about the handoff. Nobody in time: there is none.
func (h *handover) question(budget store.Budget) thread.Question {
	q := h.run.question(thread.AskHandoff, thread.HandoffFull)
	q.Options, q.Default = []thread.Decision{thread.Accept, thread.Decline}, thread.Decline
	p := h.proposal(budget)
	q.Proposal = &p
	why := fmt.Sprintf("its conversation takes up %d of the %d tokens of its context window", p.Tokens, p.Window)
	if h.cause == nil {
		q.Code, why = thread.HandoffAsked, fmt.Sprintf("%s has asked for it; %s", h.request.By, why)
	}
	q.Text = fmt.Sprintf("Thread %s (%s) would hand over to a new thread: %s. It has used %s and %s; "+
		"the new thread would have %s and %s, and its first call costs about %s. ",
		h.ID, h.meta.Directive, why, thread.TurnsText(h.cost.Turns), p.Spend, thread.TurnsText(p.Turns), p.Left, p.Expected)
	if p.Summary == "" {
		q.Text += "There is no summary; the new thread is given a record of the work and the last messages. Shall it hand over?"
		return q
	}
	q.Text += "Shall it hand over, with this summary?\n" + guard.Shorten(p.Summary, shownSummary, "the rest is left out here")
	return q
}

// proposal says what the handoff comes to.
func (h *handover) proposal(budget store.Budget) thread.Proposal {
	used, window := h.contextUse()
	p := thread.Proposal{
		Summary: guard.Shorten(h.summary.text, thread.MaxSummary, "the rest is left out"), Tokens: used, Window: window,
		Spend: budget.Actual, Left: max(0, budget.Remaining()+budget.Pledged), Turns: h.meta.Limits.Turns, Last: h.full,
	}
	if h.Settings.Continuation.Limits != config.LimitsFresh {
		p.Turns = max(0, p.Turns-h.cost.Turns)
	}
	fixed, _ := limit.ContextUse(h.begins, 0, h.fixedChars())
	p.Expected = h.begins.Price.Cost(llm.Usage{
		InputTokens: fixed + min(h.ceiling(), used), OutputTokens: h.cost.OutputTokens / int64(max(1, h.cost.Turns)),
	})
	return p
}
