package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// maxFailures ends a thread: so many model calls in a row have failed.
const maxFailures = 3

// check is made before each turn: limits, then a cancel on record.
func (r *run) check(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	budget, err := r.Store.Budget(ctx, r.ID)
	if err != nil {
		return err
	}
	used := r.cost
	used.Spend = budget.Actual // what finished children spent counts too
	if over := limit.Check(r.meta.Limits, used, r.Now().Sub(r.began)); over != nil {
		return r.exceeded(over)
	}
	rec, err := r.Store.Get(ctx, r.ID)
	if err != nil {
		return err
	}
	if !rec.CancelRequestedAt.IsZero() {
		return thread.ErrCancelled
	}
	return nil
}

func (r *run) exceeded(over *thread.LimitError) error {
	err := r.Transcript.Append(thread.EventLimitExceeded, transcript.LimitExceeded{
		Code: over.Code, Value: over.Value, Max: over.Max,
	})
	return errors.Join(over, err)
}

// ask calls the model until it answers, a failure is final, or three calls in
// a row have failed. Every call is bounded first, and what it cost is recorded
// whether it succeeded or not.
func (r *run) ask(ctx context.Context) (llm.Response, error) {
	for {
		allowance, err := r.allowance(ctx)
		if err != nil {
			return llm.Response{}, err
		}
		answer, err := r.call(ctx, allowance)
		if recErr := r.charge(ctx, answer.Usage, err == nil); recErr != nil {
			return answer, recErr
		}
		if err == nil {
			r.failing = 0
			return answer, nil
		}
		if err := r.retryAfter(ctx, err); err != nil {
			return answer, err
		}
	}
}

// allowance is the most output the next call may produce, so that the largest
// possible cost of the call fits what is left.
func (r *run) allowance(ctx context.Context) (int, error) {
	budget, err := r.Store.Budget(ctx, r.ID)
	if err != nil {
		return 0, err
	}
	tokens, err := limit.Allowance(limit.AllowanceInput{
		Limits:        r.meta.Limits,
		Used:          r.cost,
		Left:          budget.Remaining(),
		Model:         r.model.choice.Model,
		ContextTokens: r.talk.known,
		NewBytes:      r.newBytes(),
		Wanted:        r.model.choice.MaxOutput,
	})
	var over *thread.LimitError
	if errors.As(err, &over) {
		return 0, r.exceeded(over)
	}
	return tokens, err
}

// newBytes is what the provider has not counted yet: before its first report
// that includes the system prompt and the tools.
func (r *run) newBytes() int64 {
	n := r.talk.newBytes
	if r.talk.known > 0 {
		return n
	}
	n += int64(len(r.system))
	for _, t := range r.offer.tools {
		n += int64(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	return n
}

// call makes one call and streams it to the transcript.
func (r *run) call(ctx context.Context, allowance int) (llm.Response, error) {
	turn := r.cost.Turns + 1
	var writeErr error
	answer, err := r.model.client.Stream(ctx, llm.Request{
		Model: r.model.choice.Model.ID, System: r.system, Messages: r.talk.messages,
		Tools: r.offer.tools, MaxTokens: allowance,
	}, func(d llm.Delta) {
		if writeErr == nil {
			writeErr = r.Transcript.Delta(turn, d)
		}
	})
	if writeErr != nil {
		return answer, fmt.Errorf("write transcript: %w", writeErr)
	}
	return answer, err
}

// charge adds what a call cost to registry and ledger, so that a crash loses
// at most the call in flight.
func (r *run) charge(ctx context.Context, u llm.Usage, answered bool) error {
	if answered {
		r.cost.Turns++
		if !u.Reported {
			u = r.assumed()
		}
	}
	r.cost.InputTokens += u.InputTokens
	r.cost.OutputTokens += u.OutputTokens
	r.cost.CacheReadTokens += u.CacheReadTokens
	r.cost.CacheWriteTokens += u.CacheWriteTokens
	r.cost.Spend += r.model.choice.Model.Price.Cost(u)

	ctx = context.WithoutCancel(ctx) // money that was spent is recorded whatever happens
	if err := r.Store.Report(ctx, r.ID, r.cost.Spend, r.Now()); err != nil && !errors.Is(err, store.ErrNoBudget) {
		return fmt.Errorf("report spend: %w", err)
	}
	if err := r.Store.RecordCost(ctx, r.ID, r.cost, u.ContextTokens()); err != nil {
		return fmt.Errorf("record cost: %w", err)
	}
	return nil
}

// assumed is the usage of a call whose provider reported none: every byte of
// input a token, since no tokeniser makes more of them.
func (r *run) assumed() llm.Usage {
	return llm.Usage{InputTokens: r.talk.known + r.newBytes(), OutputTokens: int64(r.model.choice.MaxOutput)}
}

// retryAfter waits until a failed call may be repeated, or returns why it may
// not.
func (r *run) retryAfter(ctx context.Context, failure error) error {
	var api *llm.APIError
	if ctx.Err() != nil || !errors.As(failure, &api) {
		return failure
	}
	r.failing++
	turn, kind := r.cost.Turns+1, classify(api)
	err := r.Transcript.Append(thread.EventErrorClassified, transcript.ErrorClassified{
		Turn: turn, Category: string(kind.category), Code: api.Code, Message: api.Error(),
	})
	if err != nil {
		return err
	}
	if !kind.retry && kind.category != categoryTooLong && r.fallBack(ctx) {
		return r.Transcript.Append(thread.EventRetry, transcript.Retry{
			Turn: turn, Attempt: 1, Reason: "falling back to " + r.model.choice.Ref(),
		})
	}
	if !kind.retry || r.failing >= min(maxFailures, r.Settings.Retry.MaxAttempts) {
		return fmt.Errorf("%w (attempt %d)", failure, r.failing)
	}
	wait := backoff(r.failing, api.RetryAfter, r.Settings.Retry)
	err = r.Transcript.Append(thread.EventRetry, transcript.Retry{
		Turn: turn, Attempt: r.failing + 1, DelayMS: wait.Milliseconds(), Reason: string(kind.category),
	})
	if err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take puts an answer on record and into the conversation.
func (r *run) take(_ context.Context, a llm.Response) error {
	for _, b := range a.Blocks {
		if b.Type != llm.ReasoningBlock || b.Text == "" {
			continue
		}
		err := r.Transcript.Append(thread.EventCognitionReasoning, transcript.CognitionReasoning{
			Turn: r.cost.Turns, Text: b.Text,
		})
		if err != nil {
			return err
		}
	}
	if len(a.Blocks) > 0 {
		r.talk.add(llm.Message{Role: llm.Assistant, Blocks: a.Blocks})
	}
	r.talk.reported(a.Usage)
	return r.Transcript.Append(thread.EventCognitionOut, transcript.CognitionOut{
		Turn: r.cost.Turns, Model: a.Model, Blocks: a.Blocks, StopReason: a.StopReason, Usage: a.Usage,
		Spend: r.model.choice.Model.Price.Cost(a.Usage),
	})
}
