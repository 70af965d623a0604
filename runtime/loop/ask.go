package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// maxFailures ends a thread: so many model calls in a row have failed.
const maxFailures = 3

// ask calls the model until it answers, a failure is final, or three calls in
// a row have failed. Every call is bounded first, and what it cost is recorded
// whether it succeeded or not. The usage of the answer is the one charged.
func (r *run) ask(ctx context.Context, budget store.Budget) (llm.Response, error) {
	for {
		allowance, err := r.allowance(budget)
		if err != nil {
			return llm.Response{}, err
		}
		r.Reached.At(StepAsk)
		began := time.Now()
		c := r.call(ctx, allowance)
		r.Log.Debug().Int("turn", r.cost.Turns+1).Dur("model_ms", time.Since(began)).
			Int("tool_calls", len(toolCalls(c.answer))).Bool("ok", c.err == nil).Msg("model called")
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
		if budget, err = r.Store.Budget(ctx, r.ID); err != nil {
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
	defer r.whileAnswering(ctx, stop)()
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

// lookEvery is how often it is looked, during a call of the model, whether the
// transcript is still there. To be told would take an inotify instance for
// every thread, of which a user has 128.
const lookEvery = 2 * time.Second

// whileAnswering breaks off a call whose answer nobody could find, as when the
// thread's folder was deleted, which may be long before the model says a word.
// And it gives memory back to the system that a process only waiting does not
// need: most threads of a busy machine wait for a model. The caller calls done
// when the call is over.
func (r *run) whileAnswering(ctx context.Context, stop context.CancelCauseFunc) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(r.lookEvery)
		defer ticker.Stop()
		release := sync.OnceFunc(debug.FreeOSMemory)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := r.Transcript.InPlace(); err != nil {
				stop(err)
				return
			}
			release()
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
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
		r.Log.Warn().Err(failure).Int("turn", turn).Str("model", r.model.choice.Ref()).Msg("another model is asked")
		return r.Transcript.Append(thread.EventRetry, transcript.Retry{
			Turn: turn, Attempt: r.failing + 1, Reason: "falling back to " + r.model.choice.Ref(),
		})
	}
	if !kind.retry || r.failing >= min(maxFailures, r.Settings.Retry.MaxAttempts) {
		return fmt.Errorf("%w (attempt %d)", failure, r.failing)
	}
	wait := backoff(r.failing, api.RetryAfter, r.Settings.Retry)
	r.Log.Warn().Err(failure).Int("turn", turn).Str("category", string(kind.category)).Dur("wait_ms", wait).
		Msg("the model is asked again")
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
	err := r.Transcript.Append(thread.EventCognitionOut, transcript.CognitionOut{
		Turn: r.cost.Turns, Model: a.Model, Blocks: a.Blocks, StopReason: a.StopReason, Usage: a.Usage,
		Spend: r.model.choice.Model.Price.Cost(a.Usage),
	})
	if err != nil {
		return err
	}
	r.Reached.At(StepAnswer)
	return nil
}
