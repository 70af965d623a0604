package loop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// check is made before each turn: whether the thread may go on at all, then its
// limits. It returns the budget as it is now.
func (r *run) check(ctx context.Context) (store.Budget, error) {
	if err := r.mayGoOn(ctx); err != nil {
		return store.Budget{}, err
	}
	budget, err := r.Store.Budget(ctx, r.ID)
	if err != nil {
		return store.Budget{}, err
	}
	used := r.cost
	used.Spend = budget.Actual // the spend of finished children counts too
	limits := r.meta.Limits
	limits.Spend = max(limits.Spend, budget.MaxSpend) // more, when a child of the one before has given back
	if over := limit.Check(limits, used, r.clock.elapsed()); over != nil {
		return store.Budget{}, over
	}
	return budget, nil
}

// mayGoOn says why the thread may not, whatever its limits are.
func (r *run) mayGoOn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.Transcript.InPlace(); err != nil {
		return err
	}
	rec, err := r.Store.Get(ctx, r.ID)
	switch {
	case err != nil:
		return err
	case rec.Status.Terminal():
		// Somebody took this process for dead, as when its folder was deleted: what
		// it still spent would be on nobody's account.
		return fmt.Errorf("thread %s is %s: %w", r.ID, rec.Status, thread.ErrSettled)
	case !rec.CancelRequestedAt.IsZero():
		return rec.CancelCause()
	}
	r.inbox.unread, r.succession.asked = rec.Unread, rec.HandoffAskedAt
	return nil
}

// timeLeft is how long the thread may still work.
func (r *run) timeLeft() time.Duration {
	return time.Duration(r.meta.Limits.DurationSeconds*float64(time.Second)) - r.clock.elapsed()
}

// timed does work and interrupts whatever runs when the time for it is up. A
// limit that ends the work is put on record, whether it was found between turns
// or interrupted one.
func (r *run) timed(ctx context.Context, most time.Duration, work func(context.Context) ended) ended {
	text := strconv.FormatFloat(r.meta.Limits.DurationSeconds, 'f', -1, 64)
	cause := &thread.LimitError{Code: limit.DurationExceeded, Value: text, Max: text}
	ctx, stop := context.WithTimeoutCause(ctx, most, cause)
	defer stop()
	e := work(ctx)
	// An interrupted call reports its own failure; why it was interrupted is the
	// cause.
	if e.err != nil && ctx.Err() != nil {
		e.err = context.Cause(ctx)
	}
	if over, ok := errors.AsType[*thread.LimitError](e.err); ok {
		over.Chain = chainUse(context.WithoutCancel(ctx), r, over)
		r.record(thread.EventLimitExceeded, transcript.LimitExceeded{Code: over.Code, Value: over.Value, Max: over.Max, Chain: over.Chain})
	}
	return e
}

// chainUse is what the threads that this one continues have used of a limit that was
// reached; nil where it began with limits of its own.
func chainUse(ctx context.Context, r *run, over *thread.LimitError) *thread.ChainUse {
	c := r.meta.Continuation
	if c == nil || c.Whole == nil {
		return nil
	}
	now := r.meta.Limits
	if budget, err := r.Store.Budget(ctx, r.ID); err == nil {
		now.Spend = max(now.Spend, budget.MaxSpend)
	}
	return limit.InChain(over, now, *c.Whole)
}

// afterLimit does what follows when a limit has ended the work by e: what a hook
// decides, else what the settings say. It reports whether the thread has gone on,
// and how that ended.
func (r *run) afterLimit(ctx context.Context, e ended, over *thread.LimitError) (ended, bool) {
	if r.last { // the fate of the thread has been decided
		return e, false
	}
	d, err := r.ruleOnLimit(ctx, over)
	switch {
	case err != nil:
		return ended{err: err, doing: e.doing}, false
	case d.Verdict == hook.Fail:
		e.err = failed(d, e.err)
		return e, false
	case d.Verdict == hook.Abort:
		return ended{err: aborted(d), doing: e.doing}, false
	case d.Verdict == hook.Continue && r.roomToFinish(ctx):
		return r.goOn(ctx, over, thread.Answer{Decision: thread.Finish, By: fmt.Sprintf("hook %q", item.Shown(d.HookID))})
	case d.Verdict == hook.Escalate && r.prepared, r.limitAsks():
		return r.askAndGoOn(ctx, e, over)
	}
	return e, false
}

// roomToFinish reports whether a last turn is possible, and warns where not.
func (r *run) roomToFinish(ctx context.Context) bool {
	budget, err := r.Store.Budget(ctx, r.ID)
	room := err == nil && r.prepared && r.affordsLastTurn(budget)
	if !room {
		r.warn("a hook decided to continue at a limit, and there is no room for a last turn")
	}
	return room
}

// askAndGoOn asks what becomes of a thread that a limit has ended by e, and does
// it.
func (r *run) askAndGoOn(ctx context.Context, e ended, over *thread.LimitError) (ended, bool) {
	r.clock.stop()
	answer, err := r.askAboutLimit(ctx, over)
	r.clock.start()
	if err != nil {
		return ended{err: err, doing: "waiting to be told about its limits"}, false
	}
	if answer == nil || answer.Decision == thread.Stop {
		return e, false
	}
	return r.goOn(ctx, over, *answer)
}

// goOn goes on by an answer that does not stop the thread.
func (r *run) goOn(ctx context.Context, over *thread.LimitError, answer thread.Answer) (ended, bool) {
	if err := r.mend(); err != nil {
		return ended{err: err, doing: r.doing()}, false
	}
	if answer.Decision == thread.Finish {
		return r.lastTurn(ctx, over, answer.By), true
	}
	return r.timed(ctx, r.timeLeft(), r.turns), true
}

// mend brings the conversation up to what is on record, after a turn that was
// interrupted: calls of tools that were broken off, or not made, have their
// results there. The turn is signed first, for another one follows.
func (r *run) mend() error {
	if err := r.checkpoint(r.Transcript.Checkpoint); err != nil {
		return err
	}
	own := r.records()
	recorded, err := transcript.Messages(own.Transcript(), own.Artifacts())
	if err != nil {
		return err
	}
	for _, m := range recorded[min(len(r.conversation.messages), len(recorded)):] {
		r.conversation.add(m)
	}
	return nil
}
