package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// succession is what has come of handing the thread over.
type succession struct {
	vetoed    bool              // while the conversation still had room
	successor handoff.Successor // nil: none was made
}

// whenNearlyFull hands the thread over when, after a turn, its conversation takes
// up the share of the context window at which the settings want that. It returns
// how the thread has ended, or nil when it goes on.
func (r *run) whenNearlyFull(ctx context.Context) *ended {
	used, window := r.contextUse()
	hasRoom := float64(used) < r.Settings.Continuation.TriggerThreshold*float64(window)
	// An answer that was cut off is continued first: nobody else could join its parts.
	if r.Successors == nil || r.succession.vetoed || hasRoom || r.partial != "" {
		return nil
	}
	cause := &limit.ContextFullError{Tokens: used, Window: window}
	next, err := r.handOff(ctx)
	if _, vetoed := errors.AsType[*vetoError](err); vetoed {
		r.succession.vetoed = true
		return r.goOnFull(ctx, noHandoff(cause, err))
	}
	if err != nil {
		return r.endFull(ctx, cause, err)
	}
	return &ended{handoff: next}
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

// whenFull hands the thread over because its next call has no room. In its last
// turn there is nothing to hand over.
func (r *run) whenFull(ctx context.Context, full *fullError) *ended {
	if r.Successors == nil || r.last {
		return r.endFull(ctx, full.cause, nil)
	}
	next, err := r.handOff(ctx)
	if err != nil {
		return r.endFull(ctx, full.cause, err)
	}
	return &ended{handoff: next}
}

// endFull ends the thread because of a conversation that does not fit. Why says
// what came of the handoff; nil: there is none for this thread.
func (r *run) endFull(ctx context.Context, cause, why error) *ended {
	none, expected := errors.AsType[*noHandoffError](why)
	if why != nil && (!expected || ctx.Err() != nil) {
		return &ended{err: why, doing: "handing over to a successor"}
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

// handOff hands the thread over to a successor, and returns what the outcome says
// of it. A [*noHandoffError] says why the thread keeps its conversation; any other
// error is its end.
func (r *run) handOff(ctx context.Context) (*thread.Handoff, error) {
	if err := r.mayHandOff(); err != nil {
		return nil, err
	}
	if err := r.ruleOnHandoff(ctx); err != nil {
		return nil, err
	}
	r.completeBefore(ctx)
	summary := r.summarise(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.checkpoint(r.Transcript.Checkpoint); err != nil {
		return nil, err
	}
	r.Crashpoints.At(CrashSummary)
	return r.makeSuccessor(ctx, summary)
}

// mayHandOff refuses a handoff that would be in vain, before anything is done for
// it.
func (r *run) mayHandOff() error {
	done := r.meta.Continuation.HandoffsNow()
	most := r.Settings.Continuation.MaxChain
	switch {
	case r.cost.Turns == 0:
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

// ceiling is how many tokens the conversation of a successor may begin with: as
// the settings say, and at most half of what the system prompt and the tools leave
// of its context window, for it is to get somewhere.
func (r *run) ceiling() int64 {
	_, now := r.contextUse()
	fixed, first := limit.ContextUse(r.begins, 0, r.fixedChars())
	return min(r.Settings.Continuation.ResumeCeilingTokens, (min(now, first)-fixed)/2)
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
