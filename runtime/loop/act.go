package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// empty is the message to a model that has said nothing.
const empty = "Your answer was empty. Act with a tool call, or give the result as text."

// errRefused is the end of a thread whose model declines the task.
var errRefused = errors.New("the model refused")

// act does what an answer asks for. It returns how the thread ended, or nil
// when there is another turn.
func (r *run) act(ctx context.Context, a llm.Response) (*ended, error) {
	if a.StopReason == llm.StopRefusal {
		return nil, refused(a)
	}
	calls := toolCalls(a)
	if len(calls) == 0 {
		return r.finishOrNudge(ctx, a)
	}
	r.partial = ""
	results, done, err := r.runCalls(ctx, calls, lastCallCut(a))
	switch {
	case err != nil:
		return nil, err
	case done != nil:
		return r.returned(ctx, done)
	}
	r.conversation.add(llm.Message{Role: llm.User, Blocks: results})
	return nil, nil
}

// toolCalls are the calls that an answer asks for.
func toolCalls(a llm.Response) []llm.Block {
	var calls []llm.Block
	for _, b := range a.Blocks {
		if b.Type == llm.ToolUseBlock {
			calls = append(calls, b)
		}
	}
	return calls
}

// finishOrNudge decides about an answer without tool calls. One that was cut
// off is continued, as [cuts.goOn] says. Else the thread is complete,
// unless declared outputs or any text are missing, or, where the settings ask for
// that, nothing was done yet although there are tools; and the model has not been
// reminded often enough. With an instruction that it has not read it goes on.
func (r *run) finishOrNudge(ctx context.Context, a llm.Response) (*ended, error) {
	if a.StopReason == llm.StopMaxTokens {
		r.partial += llm.TextOf(a.Blocks)
		return r.cuts.goOn(r)
	}
	text := strings.TrimSpace(r.partial + llm.TextOf(a.Blocks))
	r.partial = ""
	if (reader{r}).steered(ctx) {
		return nil, nil
	}
	outputs := r.task.doc.Outputs
	idle := r.Settings.Nudge == config.NudgeFirstTurn && r.cost.Turns == 1 && len(r.toolset.tools) > 0 && !r.acted
	lacking := ""
	switch {
	case len(outputs) > 0:
		lacking = "the model ended without returning the declared outputs"
	case text == "":
		lacking = "the model ended without an answer"
	}
	// Without a turn left a reminder would only turn an answer into a limit error.
	turnsLeft := r.cost.Turns < r.meta.Limits.Turns
	if turnsLeft && r.nudges < prompt.MaxNudges && (lacking != "" || idle) {
		r.nudges++
		if text == "" && len(outputs) == 0 {
			return nil, r.say(empty)
		}
		return nil, r.say(prompt.Nudge(r.nudges, outputs))
	}
	if !(reader{r}).mayEnd(ctx) {
		return nil, nil
	}
	done := &ended{result: text}
	if lacking != "" {
		done.warnings = []string{lacking}
	}
	if a.StopReason == llm.StopOther && a.StopWord != "" {
		done.warnings = append(done.warnings, fmt.Sprintf("the last answer may be cut: the provider ended it with %q", a.StopWord))
	}
	return done, nil
}

// lastCallCut reports whether the output limit ended an answer within its last
// tool call. Its arguments may look whole all the same: none yet is an empty
// object.
func lastCallCut(a llm.Response) bool {
	return a.StopReason == llm.StopMaxTokens && len(a.Blocks) > 0 && a.Blocks[len(a.Blocks)-1].Type == llm.ToolUseBlock
}

// runCalls runs the tool calls of one turn at the same time, as many as the
// project allows, and returns their results in the order of the calls. A
// directive_return is looked at when the others have ended; a last call that
// was cut off is not run. When ctx ends, or a hook ends the turn, the results are
// of no use, and the error says why. A message that breaks the calls off does not: the
// results say so.
func (r *run) runCalls(ctx context.Context, calls []llm.Block, lastCut bool) ([]llm.Block, *ended, error) {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	r.hooks.halt = halt
	results := make([]llm.Block, len(calls))
	var returns, others []int
	for i, c := range calls {
		switch {
		case lastCut && i == len(calls)-1:
			results[i] = r.onRecord(c, func() toolResult { return r.show(c, cutCall(c).Body(), true) })
		case r.isReturn(c):
			returns = append(returns, i)
		default:
			others = append(others, i)
		}
	}
	turnCalls{r, calls, results}.make(ctx, others)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var done *ended
	for _, i := range returns {
		results[i] = r.onRecord(calls[i], func() toolResult {
			text, accepted := r.directiveReturn(ctx, calls[i], done != nil)
			if accepted != nil {
				done = accepted
			}
			return r.show(calls[i], text, accepted == nil)
		})
	}
	return results, done, nil
}

// turnCalls are the calls of one turn, with the places of their results.
type turnCalls struct {
	*run

	calls   []llm.Block
	results []llm.Block
}

// make makes some of them at the same time, until ctx ends or a message breaks them off.
func (t turnCalls) make(ctx context.Context, which []int) {
	tools, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	defer t.inbox.interruptible(breakOff)()
	gate := make(chan struct{}, max(1, t.Settings.ToolConcurrency))
	together(which, func(i int) {
		select {
		case gate <- struct{}{}:
			defer func() { <-gate }()
		case <-tools.Done():
		}
		c := t.calls[i]
		// The place may have come free because the call before was interrupted.
		switch {
		case ctx.Err() != nil:
		case tools.Err() != nil:
			t.results[i] = t.onRecord(c, func() toolResult { return t.show(c, notRun(c).Body(), true) })
		default:
			t.results[i] = t.onRecord(c, func() toolResult { return t.dispatch(tools, c) })
		}
	})
}

// together does something with each of some numbers at the same time. Most often there
// is one, which needs no goroutine.
func together(numbers []int, do func(int)) {
	var group sync.WaitGroup
	for i, n := range numbers {
		if i < len(numbers)-1 {
			group.Go(func() { do(n) })
		} else {
			do(n)
		}
	}
	group.Wait()
}

// onRecord makes a call, puts it on record and returns its result for the
// model. A failing or denied call is an error result, never the end of the
// thread.
func (r *run) onRecord(c llm.Block, do func() toolResult) llm.Block {
	began := time.Now()
	r.record(thread.EventToolCallStart, transcript.ToolCallStart{
		Turn: r.cost.Turns, CallID: c.ToolCallID, Tool: c.ToolName, Input: transcript.Input(c.Input),
	})
	r.Crashpoints.At(CrashCall)
	got := do()
	took := time.Since(began)
	r.record(thread.EventToolCallResult, transcript.ToolCallResult{
		Turn: r.cost.Turns, CallID: c.ToolCallID, Tool: c.ToolName, Text: got.text, IsError: got.failed,
		DurationMS: took.Milliseconds(), Images: got.images, Sum: got.sum, SameAs: got.sameAs, Ended: got.ended, Spend: r.purse.record(),
	})
	r.Log.Debug().Int("turn", r.cost.Turns).Str("tool", c.ToolName).Dur("ms", took).Bool("ok", !got.failed).Msg("tool called")
	r.Crashpoints.At(CrashResult)
	return llm.Block{
		Type: llm.ToolResultBlock, ToolCallID: c.ToolCallID, Text: got.text, IsError: got.failed, Images: got.images,
		Content: llm.ContentOf(got.sum, got.sameAs),
	}
}

func cutCall(c llm.Block) *tool.Fault {
	return tool.Faultf(tool.CodeBadArguments, "the call of %s was cut off by the output limit and has not been run", c.ToolName).
		WithHint("call it again with shorter arguments, in several calls if need be")
}

// record appends an event. The writer remembers a failure, and the checkpoint
// at the end of the turn reports it.
func (r *run) record(t thread.EventType, payload any) {
	if err := r.Transcript.Append(t, payload); err != nil {
		r.Log.Error().Err(err).Str("event", string(t)).Msg("write transcript")
	}
}
