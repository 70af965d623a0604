package continuation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Bounds of one pass; the next one goes on.
const (
	mostRetries = 20   // attempts that it makes, or drops
	mostDue     = 1000 // threads that it looks at: it passes over those that must wait
)

// RetryDue makes the attempts that are due of threads which have failed, and returns when
// the next one is; zero: there is none. Any process may call it, at any time, and each that
// moves the queue does. Of several one alone makes an attempt.
func (c *Continuer) RetryDue(ctx context.Context, now *settings.Call) (next time.Time, err error) {
	// An attempt that is queued moves the queue, and comes here again.
	lease, err := c.Threads.Life.Lease("retries")
	if errors.Is(err, life.ErrHeld) {
		return next, nil
	}
	if err != nil {
		return next, err
	}
	defer func() { _ = lease.Release() }()
	due, next, err := c.Threads.Store.DueRetries(ctx, c.Threads.Now(), mostDue)
	if err != nil {
		return next, err
	}
	p := &retryPass{Call: c.In(now), full: map[thread.ID]bool{}, away: map[string]bool{}}
	var failed []error
	for _, rec := range due {
		err := p.retry(ctx, rec)
		if err != nil {
			failed = append(failed, fmt.Errorf("retry %s: %w", rec.ThreadID, err))
		}
		if p.made == mostRetries || threads.StoreIsAway(err) || ctx.Err() != nil {
			break
		}
	}
	return next, errors.Join(failed...)
}

// retryPass is one look at the threads whose attempt is due.
type retryPass struct {
	*Call
	full map[thread.ID]bool // sets of which as many entries work as may
	away map[string]bool    // providers that cannot be asked now
	made int                // attempts that were made or dropped
}

// retrial is another attempt that has been checked and has changed nothing yet.
type retrial struct {
	resumption
	policy thread.RetryPolicy // as the directive has it now
	late   bool               // the parent has ended
	begun  bool               // the thread is registered
}

// retry makes one attempt. An attempt that nobody can make is recorded as not to be made;
// one that this process cannot make, or not now, is left to others.
func (p *retryPass) retry(ctx context.Context, due thread.Record) error {
	if mayNot, err := p.mustWait(ctx, due); mayNot || err != nil {
		return err
	}
	r := &retrial{}
	r.renewal = &renewal{Call: p.Call, asked: asked{verb: "retry", done: "tried again", via: thread.ViaRetry}}
	defer r.letOthers()
	err := r.check(ctx, due.ThreadID)
	if err == nil {
		err = r.launch(ctx)
	}
	switch {
	case err == nil:
		p.made++
		return nil
	case errors.Is(err, errOthers):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, store.ErrAway), errors.Is(err, store.ErrFenced):
		return err
	case !r.begun && threads.IsTransient(err):
		p.away[providerOf(due)] = p.away[providerOf(due)] || !threads.StoreIsAway(err)
		return err
	}
	p.made++
	p.Threads.Log.Warn().Err(err).Str("thread_id", string(due.ThreadID)).Msg("a failed thread is not tried again")
	_, dropErr := p.Threads.Store.DropRetry(context.WithoutCancel(ctx), due.ThreadID, threads.Fault(err).Message, p.Threads.Now())
	return dropErr
}

// mustWait reports whether an attempt is left for later, or to a process that has the key
// of the provider: no more entries of a set work than may, and a provider that is away is
// asked for once.
func (p *retryPass) mustWait(ctx context.Context, due thread.Record) (bool, error) {
	if p.Providers.LacksKey(due.Model) || p.away[providerOf(due)] || p.full[due.ParentID] {
		return true, nil
	}
	if due.ParentID == "" {
		return false, nil
	}
	set, err := p.Threads.Store.Set(ctx, due.ParentID)
	if errors.Is(err, store.ErrNoSet) {
		return false, nil
	}
	p.full[due.ParentID] = err == nil && set.Working >= set.Concurrency
	return p.full[due.ParentID], err
}

// providerOf is the name of the provider of a thread.
func providerOf(rec thread.Record) string {
	name, _, _ := strings.Cut(rec.Model, "/")
	return name
}

// errOthers says that somebody else is about to continue the thread.
var errOthers = errors.New("somebody else continues the thread")

// check checks everything that can keep the attempt from being made.
func (r *retrial) check(ctx context.Context, id thread.ID) (err error) {
	if r.chain, err = r.Threads.Chain(ctx, id); err != nil {
		return err
	}
	planStart := func(ctx context.Context) error { return r.planStart(ctx, r.findParent) }
	for _, step := range []func(context.Context) error{r.isDue, r.mayTouch, r.takeLease, r.verifyThread, r.isMeant, planStart, r.stillMeant, r.rebuild} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isDue refuses a thread that has been continued, or was asked to stop, since it was found
// due.
func (r *retrial) isDue(context.Context) error {
	if rec := r.before(); !rec.AwaitsRetry() {
		return errOthers
	}
	return nil
}

// takeLease keeps others from continuing the thread meanwhile.
func (r *retrial) takeLease(ctx context.Context) error {
	err := r.keepOthers(ctx)
	if told, isFault := errors.AsType[*tool.Fault](err); isFault && told.Code == tool.CodeConflict {
		return errOthers
	}
	if _, linked := errors.AsType[*store.LinkedError](err); linked {
		return errOthers
	}
	return err
}

// isMeant refuses a thread whose signed end says nothing of another attempt: the row alone
// vouches for none.
func (r *retrial) isMeant(context.Context) error {
	if o := r.meta.Outcome; o == nil || o.Retry == nil || o.Retry.Attempt != r.meta.AttemptNow()+1 {
		return tool.Faultf(tool.CodeUnsupported, "what thread %s has signed says nothing of another attempt", r.meta.ThreadID)
	}
	return nil
}

// stillMeant refuses an attempt that the directive, as it is now, does not want.
func (r *retrial) stillMeant(context.Context) error {
	attempt := r.meta.AttemptNow() + 1
	if p := r.plan.Doc.Retry; p != nil && attempt <= p.Attempts {
		r.policy = *p
		r.asked.message = attemptMessage(attempt, *p, r.before().Outcome)
		return nil
	}
	return tool.Faultf(tool.CodeUnsupported, "directive %s does not ask for attempt %d any more", r.meta.Directive, attempt)
}

// attemptMessage is what the thread is told. It holds no text of the thread before: what
// that failed with may be anybody's words.
func attemptMessage(attempt int, p thread.RetryPolicy, before *thread.Outcome) string {
	why := "error"
	if before != nil && before.Error != nil {
		why = before.Error.Code
	}
	return fmt.Sprintf("Attempt %d of %d: the one before ended here with %s, and the task is not done. "+
		"The steps above were done. Find out how far the last step came, and go on.", attempt, p.Attempts, why)
}

// findParent finds the parent of the attempt: that of the thread before, or who goes on
// for it, whether it has ended or not. It is no further child of it.
func (r *retrial) findParent(ctx context.Context, p *plan.Plan) error {
	id := r.before().ParentID
	if id == "" {
		return nil
	}
	rec, err := r.Threads.LookAsked(ctx, id)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrParentGone, err)
	}
	p.Request.Parent, r.late = rec.ThreadID, rec.Status != thread.Running
	p.Parent, err = r.Planner.ParentMeta(rec.ThreadID)
	return err
}

// rebuild makes the messages that the attempt begins with. A thread that died before it
// had any is begun again.
func (r *retrial) rebuild(ctx context.Context) error {
	left := r.Threads.Records.Of(r.before().ThreadID)
	said, err := transcript.MessagesUntil(left.Transcript(), left.Artifacts(), transcript.Until{})
	if err == nil && len(said) == 0 {
		return nil
	}
	return r.resumption.rebuild(ctx)
}

// launch registers the attempt and starts it.
func (r *retrial) launch(ctx context.Context) error {
	before := r.before()
	n := store.NewThread{
		Kind: before.Kind, Directive: before.Directive, Name: before.Name, ParentID: r.plan.Request.Parent,
		ContinuationOf: before.ThreadID, Retry: true, Model: r.plan.Choice.Ref(), Now: r.Threads.Now(),
	}
	started, err := r.Queue.In(r.Call.Call).Launch(ctx, n, nil, r.begin)
	if rival, is := errors.AsType[*store.AttemptedError](err); is {
		now, looked := r.Threads.Look(ctx, rival.By)
		if looked != nil || !now.Status.Terminal() {
			return cmp.Or(looked, errOthers)
		}
		started, err = r.Queue.In(r.Call.Call).Launch(ctx, n, nil, r.begin) // its maker was dead
	}
	switch {
	case errors.Is(err, store.ErrNoRetry): // it was cancelled just now
		return nil
	case errors.As(err, new(*store.LinkedError)): // it was resumed just now
		return errOthers
	case err != nil:
		return err
	}
	r.request.Message = r.asked.message
	r.recordResumed(context.WithoutCancel(ctx), &r.resumption, started.ThreadID)
	return nil
}

// begin gives the registered thread what is left of the money, and the conversation.
func (r *retrial) begin(ctx context.Context, rec thread.Record) (thread.Meta, error) {
	r.begun = true
	err := r.reserveRest(ctx, rec)
	meta := r.metaOf(rec, len(r.chain)+1)
	meta.Attempt = r.meta.AttemptNow() + 1
	if len(r.messages) == 0 { // it begins as the first did
		meta.Continuation = nil
		return meta, err
	}
	if err == nil {
		err = r.seed(rec, r.before(), thread.ViaRetry, r.messages, r.counted)
	}
	if err == nil {
		meta.Continuation.Children, err = r.childrenOf(r.before(), r.meta, r.children)
	}
	return meta, err
}

// reserveRest gives the attempt its budget. Of a parent that has ended it is what that had
// left, as if it had been reserved before: nobody above comes to more than its limit.
func (r *retrial) reserveRest(ctx context.Context, rec thread.Record) error {
	if !r.late {
		return r.reserve(ctx, rec)
	}
	reserve := func() error {
		return r.Threads.Store.ReserveAfter(ctx, rec.ThreadID, rec.ParentID, r.plan.Limits.Spend, r.Threads.Now())
	}
	err := reserve()
	var short *store.InsufficientError
	for try := 0; try < 3 && errors.As(err, &short) && short.Remaining > 0; try++ {
		r.plan.Limits.Spend = short.Remaining
		err = reserve()
	}
	return err
}

// rest is what is left of the limits of a chain, and all of them.
type rest struct{ limits, whole thread.Limits }

// restOf are the limits of another attempt: what the thread before has left. Money is
// that of one chain; turns and tokens are too, unless the settings renew them with each
// thread of a chain. Each attempt has the whole time: a wait, or a machine that was off, is no work.
func (r *renewal) restOf(ctx context.Context) (thread.Limits, error) {
	settings, _, err := r.Config.Coordination()
	if err != nil {
		return thread.Limits{}, err
	}
	before := r.before()
	budget, err := r.Threads.Store.Budget(ctx, before.ThreadID)
	if err != nil {
		return thread.Limits{}, err
	}
	l := r.meta.Limits
	l.Spend = max(0, budget.MaxSpend-budget.Actual-budget.Reserved)
	l.Spawns = max(0, l.Spawns-before.SpawnCount)
	if settings.Continuation.Limits != config.LimitsFresh {
		l.Turns = max(0, l.Turns-before.Cost.Turns)
		l.Tokens = max(0, l.Tokens-before.Cost.Tokens())
	}
	r.rest = rest{l, *wholeOf(r.meta, l, settings.Continuation.Limits)}
	r.rest.whole.DurationSeconds = l.DurationSeconds
	for _, over := range []struct {
		code string
		left bool
	}{{limit.SpendExceeded, l.Spend > 0}, {limit.TurnsExceeded, l.Turns > 0}, {limit.TokensExceeded, l.Tokens > 0}} {
		if !over.left {
			return l, tool.Faultf(tool.CodeUnsupported, "nothing is left of its limit for another attempt: %s", over.code)
		}
	}
	return l, nil
}
