package loop

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// ask calls the model until it answers or [run.recoverFrom] has nothing left to try.
// Every call is bounded first, and what it cost is recorded whether it succeeded
// or not. The usage of the answer is the one charged.
func (r *run) ask(ctx context.Context, budget store.Budget) (llm.Response, error) {
	for {
		allowance, err := r.afford(ctx, budget)
		if err != nil {
			return llm.Response{}, orFull(err)
		}
		r.Reached.At(StepAsk)
		began := time.Now()
		c := r.call(ctx, allowance)
		r.Log.Debug().Int("turn", r.cost.Turns+1).Dur("model_ms", time.Since(began)).
			Int("tool_calls", len(toolCalls(c.answer))).Bool("ok", c.err == nil).Msg("model called")
		if c.answer.Usage, err = r.charge(ctx, c); err != nil {
			return llm.Response{}, err
		}
		f, err := r.failureOf(c)
		if err != nil {
			return llm.Response{}, err
		}
		if f == nil {
			r.recovery.over()
			return c.answer, nil
		}
		if again, err := r.recoverFrom(ctx, f); err != nil || !again {
			return c.answer, err
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
		c.answer = readCalls(c.answer, turn, r.offers)
	}
	return c
}

// lookEvery is how often it is looked, during a call of the model, whether the
// transcript is still there. To be told would take an inotify instance for
// every thread, of which a user has 128.
const lookEvery = 2 * time.Second

// idleAfter is how long a call of the model may take before memory is given
// back, which takes some milliseconds of a processor.
const idleAfter = 100 * time.Millisecond

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
		idle := time.NewTimer(idleAfter)
		defer idle.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-idle.C:
				debug.FreeOSMemory()
			case <-ticker.C:
				if err := r.Transcript.InPlace(); err != nil {
					stop(err)
					return
				}
			}
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
	if !r.model.choice.Vision {
		req.Messages = blind(req.Messages)
	}
	if r.model.toolText != "" {
		return r.textTalk.inText(req, r.model.toolText)
	}
	return req
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
