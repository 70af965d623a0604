package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/bounds"
	"github.com/rye-mcp/rye-mcp/runtime/daily"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// The names of those that answer for nobody.
const (
	byDeadline = "nobody in time, so the default holds"
	byEnd      = "nobody: the thread has ended"
)

// limitAsks reports whether a limit that is hit is a question. The thread's last
// turn is not.
func (r *run) limitAsks() bool {
	said := r.Settings.OnLimit.Action
	if r.task.doc != nil && r.task.doc.OnLimit != "" {
		said = r.task.doc.OnLimit
	}
	return r.prepared && !r.last && said == item.OnLimitAsk
}

// askAboutLimit asks until there is an answer that can be carried out, and
// raises the limits by it. The answer is nil when stopping is all that is left.
func (r *run) askAboutLimit(ctx context.Context, over *thread.LimitError) (*thread.Answer, error) {
	why := ""
	for {
		q, err := r.limitQuestion(ctx, over, why)
		if err != nil || len(q.Options) == 1 {
			return nil, err
		}
		answer, err := r.pose(ctx, q)
		if err != nil || answer.Decision != thread.Raise {
			return &answer, err
		}
		// The answer may have become impossible since it was given: siblings
		// spend too.
		refused, err := r.raise(ctx, over, answer)
		if refused == nil || err != nil {
			return &answer, err
		}
		why = fmt.Sprintf("That could not be done: %v. ", refused)
	}
}

// limitQuestion is what is asked about a limit. Its options are those that can
// be carried out as things are.
func (r *run) limitQuestion(ctx context.Context, over *thread.LimitError, why string) (thread.Question, error) {
	most, err := r.mostLimits(ctx)
	if err != nil {
		return thread.Question{}, err
	}
	budget, err := r.Store.Budget(ctx, r.ID)
	if err != nil {
		return thread.Question{}, err
	}
	now := r.meta.Limits
	q := r.question(thread.AskLimit, over.Code)
	q.Reached, q.Limits, q.Most, q.Default = over.Value, &now, most, thread.Stop
	if limit.Raisable(now, most, over) {
		q.Options = append(q.Options, thread.Raise)
	}
	if r.affordsLastTurn(budget) {
		q.Options = append(q.Options, thread.Finish)
	}
	q.Options = append(q.Options, thread.Stop)
	if r.Settings.OnLimit.Default == config.OnLimitDefaultFinish && slices.Contains(q.Options, thread.Finish) {
		q.Default = thread.Finish
	}
	chain := ""
	if c := over.Chain; c != nil {
		chain = fmt.Sprintf(" (with the threads that it continues: %s of %s)", c.Value, c.Max)
	}
	q.Text = fmt.Sprintf("%sThread %s (%s) has reached its limit of %s: %s of %s%s. Turns so far: %d, spend: %s. What shall it do?",
		why, r.ID, r.meta.Directive, strings.ReplaceAll(limit.Name(over), "_", " "), over.Value, over.Max, chain, r.cost.Turns, budget.Actual)
	return q, nil
}

// question is one that is asked now.
func (r *run) question(kind thread.QuestionKind, code string) thread.Question {
	q := thread.Question{ID: uuid.NewString(), ThreadID: r.ID, Kind: kind, Code: code, AskedAt: r.Now()}
	q.DeadlineAt = q.AskedAt.Add(time.Duration(r.Settings.OnLimit.DeadlineSeconds * float64(time.Second)))
	return q
}

// mostLimits is what the limits can be raised to; nil for a root.
func (r *run) mostLimits(ctx context.Context) (*thread.Limits, error) {
	if r.Recorded != nil { // its ancestors are not here
		return nil, nil
	}
	from := bounds.Source{Ledger: r.Store, Records: r.Finisher.Records}
	return from.Most(ctx, r.meta.Limits, r.meta.ParentID)
}

// raise gives the thread new limits: its money first, then thread.json, by which
// its children are bounded. Refused says why the answer cannot be carried out.
func (r *run) raise(ctx context.Context, over *thread.LimitError, a thread.Answer) (refused, err error) {
	most, err := r.mostLimits(ctx)
	if err != nil {
		return nil, err
	}
	next, err := limit.Raise(r.meta.Limits, a.Limits, most, over)
	if err != nil {
		return err, nil
	}
	if next.Spend > r.meta.Limits.Spend {
		err := r.Runner.Raise(ctx, next.Spend, r.Now())
		short, today := new(store.InsufficientError), new(daily.ExceededError)
		if errors.As(err, &short) || errors.As(err, &today) || errors.Is(err, store.ErrNoBudget) {
			return err, nil
		} else if err != nil {
			return nil, err
		}
	}
	r.Log.Info().Interface("limits", next).Str("by", a.By).Msg("limits raised")
	if c := r.meta.Continuation; c != nil && c.Whole != nil {
		whole, raised := limit.Raised(*c.Whole, r.meta.Limits, next), *c
		raised.Whole = &whole
		r.meta.Continuation = &raised
	}
	r.meta.Limits = next
	return nil, r.records().Meta().Write(r.meta)
}

// pose asks a question and waits for the answer, with both on record. The thread
// has no slot meanwhile.
func (r *run) pose(ctx context.Context, q thread.Question) (thread.Answer, error) {
	r.record(thread.EventQuestionAsked, transcript.QuestionAsked{
		QuestionID: q.ID, Kind: string(q.Kind), Code: q.Code, Text: q.Text, Options: q.Options, Default: q.Default,
		DeadlineAt: q.DeadlineAt.UTC().Format(time.RFC3339),
	})
	began := time.Now()
	answer, err := r.awaitAnswer(ctx, q)
	if err != nil {
		return answer, err
	}
	r.record(thread.EventQuestionAnswered, transcript.QuestionAnswered{
		QuestionID: q.ID, Decision: answer.Decision, Limits: answer.Limits, Summary: answer.Summary, By: answer.By,
		WaitedMS: time.Since(began).Milliseconds(),
	})
	r.Crashpoints.At(CrashTold)
	return answer, nil
}

// awaitAnswer puts a question where people find it, and waits until somebody has
// answered, the deadline has passed or the thread may not go on. It is woken by commits
// to the registry.
func (r *run) awaitAnswer(ctx context.Context, q thread.Question) (answer thread.Answer, err error) {
	if r.Recorded != nil {
		return r.Recorded.Answer(q), nil
	}
	if err := r.checkpoint(r.Transcript.Checkpoint); err != nil {
		return thread.Answer{}, err
	}
	if err := r.Runner.Ask(ctx, q); err != nil {
		return thread.Answer{}, err
	}
	defer func() {
		if err != nil {
			r.withdraw(ctx, q)
		}
	}()
	r.Crashpoints.At(CrashAsked)
	r.Log.Info().Str("code", q.Code).Time("deadline", q.DeadlineAt).Msg("waiting to be told what to do")
	defer r.giveSlot(ctx)()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes := r.Store.Milestones(watching)
	deadline := time.NewTimer(q.DeadlineAt.Sub(q.AskedAt))
	defer deadline.Stop()
	look := time.NewTicker(r.lookEvery)
	defer look.Stop()
	for {
		now, err := r.Store.Question(ctx, q.ID)
		if errors.Is(err, store.ErrNoQuestion) { // the registry was lost and made anew
			err = r.Runner.Ask(ctx, q)
		}
		switch {
		case err != nil:
			return thread.Answer{}, err
		case now.Answer != nil:
			return *now.Answer, nil
		}
		if err := r.mayGoOn(ctx); err != nil {
			return thread.Answer{}, err
		}
		select {
		case <-changes:
		case <-look.C: // whether the thread's folder is still there
		case <-deadline.C:
			return r.answer(ctx, q, thread.Answer{Decision: q.Default, By: byDeadline})
		case <-ctx.Done():
			return thread.Answer{}, context.Cause(ctx)
		}
	}
}

// answer closes a question, unless somebody was faster, and returns the answer
// that holds.
func (r *run) answer(ctx context.Context, q thread.Question, a thread.Answer) (thread.Answer, error) {
	a.At = r.Now()
	closed, err := r.Store.Answer(ctx, q.ID, a)
	if _, late := errors.AsType[*store.AnsweredError](err); err != nil && !late {
		return a, err
	}
	return *closed.Answer, nil
}

// withdraw closes a question that nobody need answer any more.
func (r *run) withdraw(ctx context.Context, q thread.Question) {
	if _, err := r.answer(context.WithoutCancel(ctx), q, thread.Answer{Decision: thread.Stop, By: byEnd}); err != nil {
		r.Log.Warn().Err(err).Msg("withdraw a question")
	}
}

func (r *run) giveSlot(ctx context.Context) (back func()) {
	if r.GiveSlot == nil {
		return func() {}
	}
	return r.GiveSlot(ctx)
}
