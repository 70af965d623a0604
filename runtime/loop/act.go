package loop

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// cutOff asks a model to go on whose answer hit the output limit, which is no
// sign of being done.
const cutOff = "Your answer was cut off by the output limit. Continue exactly where it stopped, or act with a tool call."

// act does what an answer asks for. It returns how the thread ended, or nil
// when there is another turn.
func (r *run) act(ctx context.Context, a llm.Response) (*ended, error) {
	if a.StopReason == llm.StopRefusal {
		return &ended{err: fmt.Errorf("the model refused: %s", textOf(a)), doing: r.doing()}, nil
	}
	var calls []llm.Block
	for _, b := range a.Blocks {
		if b.Type == llm.ToolUseBlock {
			calls = append(calls, b)
		}
	}
	if len(calls) == 0 {
		return r.finishOrNudge(a)
	}
	results, done := r.runCalls(ctx, calls)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if done == nil {
		r.talk.add(llm.Message{Role: llm.User, Blocks: results})
	}
	return done, nil
}

// finishOrNudge decides about an answer without tool calls: the thread is
// complete, unless the answer was cut off, nothing was done yet although there
// are tools, or declared outputs are missing.
func (r *run) finishOrNudge(a llm.Response) (*ended, error) {
	text := textOf(a)
	idle := r.cost.Turns == 1 && len(r.offer.tools) > 0
	if r.nudges >= prompt.MaxNudges || a.StopReason != llm.StopMaxTokens && len(r.task.doc.Outputs) == 0 && !idle && text != "" {
		return &ended{result: text}, nil
	}
	r.nudges++
	if a.StopReason == llm.StopMaxTokens {
		return nil, r.say(cutOff)
	}
	return nil, r.say(prompt.Nudge(r.nudges, r.task.doc.Outputs))
}

// runCalls runs the tool calls of one turn at the same time, as many as the
// project allows, and returns their results in the order of the calls. A
// directive_return is looked at when the others have ended.
func (r *run) runCalls(ctx context.Context, calls []llm.Block) ([]llm.Block, *ended) {
	results := make([]llm.Block, len(calls))
	gate := make(chan struct{}, max(1, r.Settings.ToolConcurrency))
	var group sync.WaitGroup
	var returns []int
	for i, call := range calls {
		if r.isReturn(call) {
			returns = append(returns, i)
			continue
		}
		group.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			results[i] = r.runCall(ctx, call)
		})
	}
	group.Wait()
	var done *ended
	for _, i := range returns {
		result := r.directiveReturn(calls[i], done == nil)
		results[i] = result.block
		if result.ended != nil {
			done = result.ended
		}
	}
	return results, done
}

// runCall runs one call and puts it on record. A failing or denied call is an
// error result for the model, never the end of the thread.
func (r *run) runCall(ctx context.Context, call llm.Block) llm.Block {
	began := r.Now()
	r.record(thread.EventToolCallStart, transcript.ToolCallStart{
		Turn: r.cost.Turns, CallID: call.ToolCallID, Tool: call.ToolName, Input: transcript.Input(call.Input),
	})
	text, failed := r.dispatch(ctx, call)
	text = r.keep(text)
	r.record(thread.EventToolCallResult, transcript.ToolCallResult{
		Turn: r.cost.Turns, CallID: call.ToolCallID, Tool: call.ToolName, Text: text, IsError: failed,
		DurationMS: r.Now().Sub(began).Milliseconds(),
	})
	return llm.Block{Type: llm.ToolResultBlock, ToolCallID: call.ToolCallID, Text: text, IsError: failed}
}

// record appends an event. The writer remembers a failure, and the checkpoint
// at the end of the turn reports it.
func (r *run) record(t thread.EventType, payload any) {
	if err := r.Transcript.Append(t, payload); err != nil {
		r.Log.Error().Err(err).Str("event", string(t)).Msg("write transcript")
	}
}

func (r *run) isReturn(call llm.Block) bool {
	entry, known := r.offer.palette.Get(call.ToolName)
	return known && entry.Kind == palette.KindReturn
}

// textOf joins the text of an answer.
func textOf(a llm.Response) string {
	var parts []string
	for _, b := range a.Blocks {
		if b.Type == llm.TextBlock && strings.TrimSpace(b.Text) != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}
