package loop

import (
	"context"
	"net/http"
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
func (r *run) ask(ctx context.Context, budget store.Budget) (*call, error) {
	for {
		allowance, pledged, err := r.afford(ctx, budget)
		if err != nil {
			return nil, orFull(err)
		}
		r.Crashpoints.At(CrashAsk)
		c := r.call(ctx, allowance)
		c.pledged = pledged
		r.Log.Debug().Int("turn", r.cost.Turns+1).Int64("model_ms", c.took.ModelMS).
			Int("tool_calls", len(toolCalls(c.answer))).Bool("ok", c.err == nil).Msg("model called")
		if c.answer.Usage, err = r.charge(ctx, c); err != nil {
			return nil, err
		}
		warnOfCall(r, c)
		if again, err := c.again(ctx, r); err != nil || !again {
			return c, err
		}
		if err := (reader{r}).lookAndRead(ctx); err != nil {
			return nil, err
		}
		if budget, err = r.Store.Budget(ctx, r.ID); err != nil {
			return nil, err
		}
	}
}

// again reports whether the model is to be asked again: a message has broken off
// the call, or it has failed and is repeated. If not, and without an error, the answer
// stands.
func (c *call) again(ctx context.Context, r *run) (again bool, err error) {
	if c.brokenOff && ctx.Err() == nil {
		return true, nil
	}
	f, err := r.failureOf(c)
	if err != nil {
		return false, err
	}
	if f == nil {
		r.recovery.over()
		return false, nil
	}
	return r.recoverFrom(ctx, f)
}

// call is one call of the model and what came of it.
type call struct {
	answer    llm.Response
	err       error
	allowance int           // output tokens it was given
	pledged   thread.Micros // the most it may cost
	input     int64         // tokens that the request can be at most
	delivered int64         // bytes of the answer that arrived
	absurd    bool          // the usage that was reported is impossible
	brokenOff bool          // by a message to the thread
	charged   thread.Micros
	took      transcript.Took // empty in a replay, whose times are nobody's

	mu     sync.Mutex // of what follows, which another goroutine sets
	sent   bool       // the whole request has left
	sentAt time.Time
	over   bool // news of the request now comes too late
}

// leaves notes that the request has left, and lets tell put it on record, unless
// the call is over.
func (c *call) leaves(tell func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.sent, c.sentAt = true, time.Now()
	tell()
}

// time says how long the call took that began at a time and whose answer began at first,
// which may be zero.
func (c *call) time(began, first time.Time) {
	c.took.ModelMS = time.Since(began).Milliseconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !first.IsZero() && c.sent {
		ms := max(0, first.Sub(c.sentAt).Milliseconds())
		c.took.FirstMS = &ms
	}
}

func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// call makes one call and streams it to the transcript. An answer that cannot
// be put on record is broken off: nobody could use what it goes on to cost.
func (r *run) call(ctx context.Context, allowance int) *call {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer r.whileAnswering(ctx, stop)()
	defer r.inbox.interruptible(stop)()
	c := &call{allowance: allowance, input: r.conversation.most(r.newBytes())}
	turn := r.cost.Turns + 1
	request := r.request(allowance)
	began, first := time.Now(), time.Time{}
	request.Sent = r.onSent(c, turn, began)
	c.answer, c.err = r.model.client.Stream(ctx, request, func(d llm.Delta) {
		if c.delivered += d.Bytes(); first.IsZero() && d.Bytes() > 0 {
			first = time.Now()
		}
		if err := r.Transcript.Delta(turn, d); err != nil {
			stop(err)
		}
	})
	c.end()
	if r.Recorded == nil {
		c.time(began, first)
	}
	c.brokenOff = c.err != nil && wasInterrupted(ctx)
	if err := c.bill().CheckUsage(r.model.choice.Model); err != nil {
		c.absurd = true
		c.err = &llm.APIError{Status: http.StatusOK, Type: typeAbsurdUsage, Message: err.Error(), MidStream: true, Err: err}
	}
	return c
}

// onSent puts on record that the request of a call has left, so that whoever finds
// this process dead knows what it may have cost.
func (r *run) onSent(c *call, turn int, began time.Time) func(bytes int64) {
	event := transcript.CognitionRequest{
		Turn: turn, Model: r.model.choice.Ref(), InputTokens: c.input, MaxTokens: c.allowance, Price: r.model.choice.Model.Price,
		ContextWindow: r.model.choice.Model.ContextWindow,
	}
	if failed := r.recovery.failing; failed > 0 {
		event.Attempt = failed + 1
	}
	return func(bytes int64) {
		c.leaves(func() {
			if r.Recorded == nil {
				event.Bytes, event.SentMS = bytes, time.Since(began).Milliseconds()
			}
			r.record(thread.EventCognitionRequest, event)
		})
	}
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
	return llm.Request{
		Model: r.model.choice.Model.ID, System: r.system, Messages: r.model.given(r.conversation.messages),
		Tools: r.toolset.tools, MaxTokens: allowance, Turn: r.cost.Turns + 1,
		CacheKey: r.cacheKey, Effort: r.task.doc.Model.Effort,
	}
}

// take puts the answer of a call on record and into the conversation, one without
// content too.
func (r *run) take(c *call) error {
	a := c.answer
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
	c.tellCutInput(r)
	signedBy(r.model.choice.Ref(), a.Blocks)
	r.conversation.add(llm.Message{Role: llm.Assistant, Blocks: a.Blocks})
	r.conversation.reported(a.Usage)
	err := r.Transcript.Append(thread.EventCognitionOut, transcript.CognitionOut{
		Turn: r.cost.Turns, Model: a.Model, Blocks: a.Blocks, StopReason: a.StopReason, StopWord: a.StopWord, Usage: a.Usage,
		Spend: r.model.choice.Model.Price.Cost(a.Usage), Took: c.took,
	})
	if err != nil {
		return err
	}
	r.Crashpoints.At(CrashAnswer)
	return nil
}
