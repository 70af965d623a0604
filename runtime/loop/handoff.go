package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// succession is what has come of handing the thread over.
type succession struct {
	vetoed    bool              // while the conversation still had room
	successor handoff.Successor // nil: none was made
	asked     time.Time         // when somebody has asked for it, by the row
	heeded    time.Time         // the one that was done, or could not be
}

// handover is one attempt of a thread to hand over.
type handover struct {
	*run

	cause   error                  // the conversation takes up too much; nil: there is room
	full    bool                   // it takes up so much that there is no other turn
	request *thread.HandoffRequest // nil: nobody has asked for it
	summary summary
	undo    func() error // puts back what was there in place of the summary
}

// afterTurn hands the thread over when, after a turn, its conversation takes up the
// share of the context window at which the settings want that, or somebody has asked
// for it. It returns how the thread has ended, or nil when it goes on.
func (r *run) afterTurn(ctx context.Context) *ended {
	used, window := r.contextUse()
	asked := r.succession.asked.After(r.succession.heeded)
	hasRoom := float64(used) < r.Settings.Continuation.TriggerThreshold*float64(window)
	// An answer that was cut off is continued first: nobody else could join its parts.
	if r.partial != "" || !asked && (r.Successors == nil || r.succession.vetoed || hasRoom) {
		return nil
	}
	h := &handover{run: r}
	if !hasRoom {
		h.cause = &limit.ContextFullError{Tokens: used, Window: window}
	}
	if asked {
		if err := h.takeRequest(ctx); err != nil {
			return &ended{err: err, doing: r.doing()}
		}
	}
	return h.begin(ctx)
}

// takeRequest reads what somebody has asked for, which counts once.
func (h *handover) takeRequest(ctx context.Context) (err error) {
	h.succession.heeded = h.succession.asked
	if h.request, err = h.Store.AskedHandoff(ctx, h.ID); h.request == nil {
		h.request = &thread.HandoffRequest{By: "somebody"} // the registry was lost and made anew
	}
	return err
}

// whenFull hands the thread over because its next call has no room. In its last
// turn there is nothing to hand over.
func (r *run) whenFull(ctx context.Context, full *fullError) *ended {
	if r.Successors == nil || r.last {
		return r.endFull(ctx, full.cause, nil)
	}
	return (&handover{run: r, cause: full.cause, full: true}).begin(ctx)
}

// begin hands the thread over, unless somebody is to be asked first.
func (h *handover) begin(ctx context.Context) *ended {
	err := h.prepare(ctx)
	if err == nil && h.Settings.Continuation.Approval == config.ApprovalAsk {
		return &ended{err: &proposed{h}, doing: doingHandoff}
	}
	if err == nil {
		var next *thread.Handoff
		if next, err = h.complete(ctx); err == nil {
			return &ended{handoff: next}
		}
	}
	return h.without(ctx, err)
}

const doingHandoff = "handing over to a successor"

// without is what becomes of the thread when it has not handed over, and err says
// why: its end, or nil when it goes on.
func (h *handover) without(ctx context.Context, err error) *ended {
	none, expected := errors.AsType[*noHandoffError](err)
	if h.cause == nil && expected && ctx.Err() == nil {
		h.warn(fmt.Sprintf("%s asked for a handoff: %s", h.request.By, none.Error()))
		return nil
	}
	if h.cause == nil {
		return &ended{err: err, doing: doingHandoff}
	}
	if expected && none.calledOff() && !h.full {
		h.succession.vetoed = true
		return h.goOnFull(ctx, noHandoff(h.cause, err))
	}
	return h.endFull(ctx, h.cause, err)
}

// goOnFull lets a thread go on whose conversation still has some room, unless a
// hook decides about cause that it ends.
func (r *run) goOnFull(ctx context.Context, cause error) *ended {
	r.Log.Warn().Err(cause).Msg("the thread goes on until its conversation does not fit any more")
	if end := r.ruleOnContext(ctx, cause); end != nil {
		return &ended{err: end, doing: r.doing()}
	}
	return nil
}

// endFull ends the thread because of a conversation that does not fit. Why says
// what came of the handoff; nil: there is none for this thread.
func (r *run) endFull(ctx context.Context, cause, why error) *ended {
	none, expected := errors.AsType[*noHandoffError](why)
	if why != nil && (!expected || ctx.Err() != nil) {
		return &ended{err: why, doing: doingHandoff}
	}
	end := fmt.Errorf("%w; %s", cause, contextAdvice)
	if none != nil {
		end = noHandoff(cause, none)
	}
	if decided := r.ruleOnContext(ctx, end); decided != nil {
		end = decided
	}
	return &ended{err: end, doing: fmt.Sprintf("asking the model in turn %d", r.cost.Turns+1)}
}

// prepare does what comes before a successor is made: hooks and summary. A
// [*noHandoffError] says why the thread keeps its conversation; any other error is its
// end. With an error it takes back what was written.
func (h *handover) prepare(ctx context.Context) error {
	if err := h.mayHandOff(); err != nil {
		return err
	}
	if err := h.ruleOnHandoff(ctx); err != nil {
		return err
	}
	if err := h.keepSummary(); err != nil {
		return &noHandoffError{why: fmt.Errorf("no summary could be written: %w", err), advice: contextAdvice}
	}
	h.completeBefore(ctx)
	h.summarise(ctx)
	if ctx.Err() != nil {
		return h.takeBack(context.Cause(ctx))
	}
	if err := h.checkpoint(h.Transcript.Checkpoint); err != nil {
		return h.takeBack(err)
	}
	h.Crashpoints.At(CrashSummary)
	return nil
}

// keepSummary sees to it that the summary can be taken back. A thread that is replayed
// writes none.
func (h *handover) keepSummary() (err error) {
	h.undo = func() error { return nil }
	if h.Recorded == nil {
		h.undo, err = h.Finisher.KeepSummary(h.meta.Directive, h.ID)
	}
	return err
}

// summarise gives the successor the summary that somebody has asked for, or one that
// is written now.
func (h *handover) summarise(ctx context.Context) {
	if h.request == nil || h.request.Summary == "" {
		h.summary = summarizer{h.run}.summarise(ctx)
		return
	}
	if err := h.put(ctx, h.request.Summary); err != nil {
		h.warn("the summary that was given could not be kept: " + err.Error())
	}
}

// put makes a text that somebody has given the summary.
func (h *handover) put(ctx context.Context, text string) error {
	text = summarizer{h.run}.cutSummary(text)
	if h.Recorded != nil {
		h.summary.text = text
		return nil
	}
	own, err := h.Store.Get(ctx, h.ID)
	if err == nil {
		err = h.Finisher.WriteSummary(own, text)
	}
	if err != nil {
		return err
	}
	h.summary = summary{id: finish.SummaryID(h.meta.Directive, h.ID), text: text}
	return nil
}

// complete makes the successor. When that fails, what was written before is taken back.
func (h *handover) complete(ctx context.Context) (*thread.Handoff, error) {
	next, err := h.makeSuccessor(ctx, h.summary)
	if err != nil {
		return nil, h.takeBack(err)
	}
	if h.summary.why != "" {
		h.warn("the successor has no summary: " + h.summary.why)
	}
	return next, nil
}

// takeBack takes back what was written for a handoff that err has prevented.
func (h *handover) takeBack(err error) error {
	if undone := h.undo(); undone != nil {
		h.Log.Error().Err(undone).Msg("the summary of a handoff that was called off is left")
	}
	h.summary = summary{}
	return err
}

// mayHandOff refuses a handoff that would be in vain, before anything is done for
// it.
func (r *run) mayHandOff() error {
	done := r.meta.Continuation.HandoffsNow()
	most := r.Settings.Continuation.MaxChain
	switch {
	case r.Successors == nil:
		return &noHandoffError{why: errNoMaker, advice: contextAdvice}
	case r.cost.Turns == 0 && r.conversation.tookOver(r.meta.Continuation) <= max(0, r.ceiling()): // a successor would get no further
		return &noHandoffError{why: errNoProgress, advice: contextAdvice}
	case done >= most:
		return tooLong(&handoff.ChainError{Handoffs: done, Max: most})
	case r.ceiling() < handoff.MinCeiling:
		return &noHandoffError{why: errNoRoom, advice: contextAdvice}
	}
	if _, err := r.continuationDirective(); err != nil {
		return &noHandoffError{why: fmt.Errorf("its successor would not know how to go on: %w", err), advice: "mend the continuation directive"}
	}
	return nil
}

// ceiling is how many tokens the conversation of a successor may begin with.
func (r *run) ceiling() int64 {
	_, now := r.contextUse()
	fixed, first := limit.ContextUse(r.begins, 0, r.fixedChars())
	return handoff.Ceiling(r.Settings.Continuation.ResumeCeilingTokens, min(now, first), fixed)
}

// completeBefore fires the last hooks of a thread that is about to be continued
// while it still runs, so that its successor finds what they write.
func (r *run) completeBefore(ctx context.Context) {
	err := r.notify(ctx, hook.EventAfterComplete, map[string]any{"status": thread.Continued})
	if err != nil && ctx.Err() == nil {
		r.warn(fmt.Sprintf("the hooks of %s did not all run: %v", hook.EventAfterComplete, err))
	}
}

// makeSuccessor has the thread made that continues this one. Nothing interrupts
// that: once the budget has moved there is no way back.
func (r *run) makeSuccessor(ctx context.Context, s summary) (*thread.Handoff, error) {
	task, err := r.taskText()
	if err != nil {
		return nil, err
	}
	next, err := r.Successors.MakeSuccessor(context.WithoutCancel(ctx), handoff.Request{
		ThreadID: r.ID, Ceiling: r.ceiling(), SummaryID: s.id, Summary: s.text, Task: task, Secrets: r.Secrets.Values(),
		Used: handoff.Used{Turns: r.cost.Turns, Tokens: r.cost.Tokens(), Seconds: r.clock.elapsed().Seconds()},
	})
	if err != nil {
		if gone := r.mayGoOn(ctx); gone != nil {
			return nil, gone
		}
		if long, ok := errors.AsType[*handoff.ChainError](err); ok {
			return nil, tooLong(long)
		}
		r.Log.Error().Err(err).Msg("make a successor")
		// Not wrapped: of what failed elsewhere nothing follows for how this thread ends.
		return nil, &noHandoffError{why: errors.New("its successor could not be made: " + err.Error()), advice: contextAdvice}
	}
	r.succession.successor = next
	r.Crashpoints.At(CrashSuccessor)
	said := next.Handoff()
	r.Log.Info().Str("successor", string(said.NewThreadID)).Int("trailing_turns", said.TrailingTurns).Msg("handing over")
	return &said, nil
}

// taskText is the directive as the model is told it when it starts, with the context
// that stands around it. Hooks give their part again.
func (r *run) taskText() (string, error) {
	first, err := opening.Prepare(r.task.composed, r.task.doc, r.meta.Inputs, r.Env, r.facts())
	if err != nil {
		return "", err
	}
	_, task := prompt.Build(first.Input)
	return task, nil
}

// passOn starts the successor of a thread that has ended as continued, and gives
// up one that was made in vain. Where the end could not be carried through, the
// transcript counts, for whoever settles the thread goes by it.
func (r *run) passOn(ctx context.Context, rec thread.Record, err error) {
	next := r.succession.successor
	if next == nil {
		return
	}
	decided := r.Transcript.Decided()
	if rec.Status == thread.Continued || err != nil && decided != nil && decided.Outcome.State == thread.Continued {
		if err := next.Start(ctx); err != nil {
			r.Log.Error().Err(err).Str("successor", string(next.Handoff().NewThreadID)).Msg("start the successor")
		}
		r.Crashpoints.At(CrashStarted)
		return
	}
	next.GiveUp(ctx, errors.Join(fmt.Errorf("thread %s could not hand over", r.ID), err))
}
