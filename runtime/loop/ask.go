package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// maxFailures ends a thread: so many model calls in a row have failed.
const maxFailures = 3

// check is made before each turn: limits, then whether the thread may go on at
// all.
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
		return over
	}
	rec, err := r.Store.Get(ctx, r.ID)
	if err != nil {
		return err
	}
	switch {
	case rec.Status.Terminal():
		// Somebody took this process for dead, as when its folder was deleted: what
		// it still spent would be on nobody's account.
		return fmt.Errorf("thread %s is %s: %w", r.ID, rec.Status, thread.ErrSettled)
	case !rec.CancelRequestedAt.IsZero():
		return thread.ErrCancelled
	}
	return nil
}

// ask calls the model until it answers, a failure is final, or three calls in
// a row have failed. Every call is bounded first, and what it cost is recorded
// whether it succeeded or not. The usage of the answer is the one charged.
func (r *run) ask(ctx context.Context) (llm.Response, error) {
	for {
		allowance, err := r.allowance(ctx)
		if err != nil {
			return llm.Response{}, err
		}
		c := r.call(ctx, allowance)
		if c.answer.Usage, err = r.charge(ctx, c); err != nil {
			return llm.Response{}, err
		}
		if c.err == nil {
			r.failing = 0
			return c.answer, nil
		}
		if err := r.retryAfter(ctx, c.err); err != nil {
			return llm.Response{}, err
		}
	}
}

// call is one call of the model and what came of it.
type call struct {
	answer    llm.Response
	err       error
	allowance int   // output tokens it was given
	bytes     int64 // of text and reasoning that arrived
	toolCalls bool  // a tool call began, whose arguments are not in bytes
}

// call makes one call and streams it to the transcript. An answer that cannot
// be put on record is broken off: nobody could use what it goes on to cost.
func (r *run) call(ctx context.Context, allowance int) call {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c := call{allowance: allowance}
	turn := r.cost.Turns + 1
	c.answer, c.err = r.model.client.Stream(ctx, r.request(allowance), func(d llm.Delta) {
		c.bytes += int64(len(d.Text))
		c.toolCalls = c.toolCalls || d.Type == llm.ToolUseBlock
		if err := r.Transcript.Delta(turn, d); err != nil {
			stop(err)
		}
	})
	if c.err == nil && r.model.toolText != "" {
		c.answer = readCalls(c.answer, turn)
	}
	return c
}

func (r *run) request(allowance int) llm.Request {
	req := llm.Request{
		Model: r.model.choice.Model.ID, System: r.system, Messages: r.talk.messages,
		Tools: r.offer.tools, MaxTokens: allowance,
	}
	if r.model.toolText != "" {
		return inText(req, r.model.toolText)
	}
	return req
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
			Turn: turn, Attempt: r.failing + 1, Reason: "falling back to " + r.model.choice.Ref(),
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

// take puts an answer on record and into the conversation, one without content
// too.
func (r *run) take(a llm.Response) error {
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
	r.talk.add(llm.Message{Role: llm.Assistant, Blocks: a.Blocks})
	r.talk.reported(a.Usage)
	return r.Transcript.Append(thread.EventCognitionOut, transcript.CognitionOut{
		Turn: r.cost.Turns, Model: a.Model, Blocks: a.Blocks, StopReason: a.StopReason, Usage: a.Usage,
		Spend: r.model.choice.Model.Price.Cost(a.Usage),
	})
}
