package loop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// errorParam is the param of a decision to fail or abort that says why.
const errorParam = "error"

// toldError is an end that a hook has decided.
type toldError struct {
	says  string
	cause error // what it was about; nil: nothing had failed
}

func (e *toldError) Error() string { return e.says }
func (e *toldError) Unwrap() error { return e.cause }

// failed is the end of a thread that a hook wants to fail because of cause, which
// is nil when nothing was wrong but to the hook.
func failed(d hook.Decision, cause error) error {
	says := saysOf(d)
	switch {
	case says != "":
		return &toldError{says: says, cause: cause}
	case cause != nil:
		return cause
	}
	return &toldError{says: fmt.Sprintf("hook %q decided that the thread fails", item.Shown(d.HookID))}
}

// aborted is the end of a thread that a hook wants to end as cancelled.
func aborted(d hook.Decision) error {
	if says := saysOf(d); says != "" {
		return fmt.Errorf("%w by hook %q: %s", thread.ErrCancelled, item.Shown(d.HookID), says)
	}
	return fmt.Errorf("%w by hook %q", thread.ErrCancelled, item.Shown(d.HookID))
}

func saysOf(d hook.Decision) string {
	if says := d.Params[errorParam]; says != nil {
		return item.Text(says)
	}
	return ""
}

// delayOf is how long a retry waits; nil when the hook does not say.
func delayOf(d hook.Decision) *time.Duration {
	if d.Delay == nil {
		return nil
	}
	delay := time.Duration(min(*d.Delay, maxDelay.Seconds()) * float64(time.Second))
	return &delay
}

// maxDelay bounds the wait before a retry; the time of the thread does too.
const maxDelay = 24 * time.Hour

// ruleOnFailure asks the hooks about a failed call of the model.
func (r *run) ruleOnFailure(ctx context.Context, data map[string]any) (hookDecision, error) {
	d, err := r.control(ctx, hook.EventError, data)
	if err != nil {
		return hookDecision{}, err
	}
	switch d.Verdict {
	case hook.Retry:
		return hookDecision{again: true, wait: delayOf(d)}, nil
	case hook.Fail:
		return hookDecision{fail: true, says: saysOf(d)}, nil
	case hook.Abort:
		return hookDecision{end: aborted(d)}, nil
	case hook.Escalate:
		return hookDecision{ask: d.HookID}, nil
	default:
		return hookDecision{}, nil
	}
}

// afterFailure asks the hooks about a tool call that failed, and makes it again
// when they, or a person, want that. Else the failure stands as the result, and
// may end the thread.
func (r *run) afterFailure(ctx context.Context, c llm.Block, failure error) (any, error) {
	if ctx.Err() != nil {
		return nil, failure // it was interrupted
	}
	f := action.ToolFault(c.ToolName, failure)
	d, err := r.control(ctx, hook.EventError, map[string]any{
		"error": map[string]any{
			"source": "tool", "type": "tool", "tool": c.ToolName, "code": f.Code,
			"message": r.Secrets.Mask(f.Message), "call_id": c.ToolCallID,
		},
		"classification": map[string]any{"category": "tool", "pattern": f.Code, "retryable": false},
	})
	if err == nil {
		switch d.Verdict {
		case hook.Retry:
			return r.callAgain(ctx, c, failure, delayOf(d))
		case hook.Fail:
			err = failed(d, f)
		case hook.Abort:
			err = aborted(d)
		case hook.Escalate:
			return r.escalateCall(ctx, c, d, f)
		default:
			return nil, failure
		}
	}
	r.hooks.halt(err)
	return nil, failure
}

// callAgain makes a tool call a second time.
func (r *run) callAgain(ctx context.Context, c llm.Block, failure error, delay *time.Duration) (any, error) {
	if r.Recorded != nil || delay != nil && r.recovery.pause(ctx, *delay) != nil {
		return nil, failure // the result on record is that of the last call
	}
	r.Log.Info().Str("tool", c.ToolName).Msg("the tool is called again")
	return r.invoke(ctx, c)
}

// escalateCall lets a person decide about a tool call that failed. The time of the
// thread runs on: the other calls of the turn do too.
func (r *run) escalateCall(ctx context.Context, c llm.Block, d hook.Decision, failure *tool.Fault) (any, error) {
	r.hooks.asking.Lock()
	defer r.hooks.asking.Unlock()
	answer, err := r.pose(ctx, r.hookQuestion(d.HookID, fmt.Sprintf("its call of %s failed: %v", c.ToolName, failure)))
	switch {
	case err != nil:
		return nil, failure // the thread may not go on, and its turn finds out why
	case answer.Decision == thread.GoOn:
		return r.callAgain(ctx, c, failure, nil)
	}
	r.hooks.halt(failure)
	return nil, failure
}

// escalated is an end that a person can still avert.
type escalated struct {
	hook string // id of the one that asks for a person
	err  error  // how the thread ends otherwise
}

func (e *escalated) Error() string { return e.err.Error() }
func (e *escalated) Unwrap() error { return e.err }

// afterEnd does what an end is followed by: a limit, a handoff that somebody has to
// allow, or what a hook has handed to a person. It reports whether the thread has gone on, and how that ended.
func (r *run) afterEnd(ctx context.Context, e ended) (ended, bool) {
	if p, ok := errors.AsType[*proposed](e.err); ok {
		return p.handover.ask(ctx)
	}
	if e.err != nil && ctx.Err() == nil {
		if esc, ok := errors.AsType[*escalated](e.err); ok {
			return r.afterEscalation(ctx, e, esc)
		}
		if over, ok := errors.AsType[*thread.LimitError](e.err); ok {
			return r.afterLimit(ctx, e, over)
		}
	}
	return e, false
}

func (r *run) afterEscalation(ctx context.Context, e ended, esc *escalated) (ended, bool) {
	e.err = esc.err
	if r.last {
		return e, false
	}
	r.clock.stop()
	answer, err := r.pose(ctx, r.hookQuestion(esc.hook, esc.err.Error()))
	r.clock.start()
	switch {
	case err != nil:
		return ended{err: err, doing: "waiting to be told whether to go on"}, false
	case answer.Decision != thread.GoOn:
		return e, false
	}
	r.recovery.over()
	if err := r.mend(); err != nil {
		return ended{err: err, doing: r.doing()}, false
	}
	return r.timed(ctx, r.timeLeft(), r.turns), true
}

// hookQuestion asks a person whether the thread goes on. Nobody in time: it does
// not.
func (r *run) hookQuestion(id, what string) thread.Question {
	q := r.question(thread.AskHook, id)
	q.Options, q.Default = []thread.Decision{thread.GoOn, thread.Stop}, thread.Stop
	q.Text = fmt.Sprintf("Hook %q wants somebody to decide about thread %s (%s): %s. "+
		"It has used %s. Shall it go on, and try again what failed?", id, r.ID, r.meta.Directive, r.Secrets.Mask(what), thread.TurnsText(r.cost.Turns))
	return q
}

// ruleOnLimit asks the hooks about a limit that was hit.
func (r *run) ruleOnLimit(ctx context.Context, over *thread.LimitError) (hook.Decision, error) {
	if r.last {
		return hook.Decision{}, nil
	}
	return r.control(ctx, hook.EventLimit, map[string]any{
		"limit_code": over.Code, "current_value": number(over.Value), "current_max": number(over.Max),
	})
}

// number is a value of a limit as conditions compare it.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := item.ParseValue(item.TypeNumber, text); err == nil {
		return f
	}
	return text
}

// ruleOnContext asks the hooks about a conversation that does not fit its model, or
// soon will not, of which cause tells. It returns the end that they decide, or nil.
func (r *run) ruleOnContext(ctx context.Context, cause error) error {
	used, window := r.contextUse()
	d, err := r.control(ctx, hook.EventContextLimitReached, map[string]any{
		"usage_ratio": float64(used) / float64(window), "tokens_used": used, "tokens_limit": window,
	})
	switch {
	case err != nil:
		return err
	case d.Verdict == hook.Fail:
		return failed(d, cause)
	case d.Verdict == hook.Abort:
		return aborted(d)
	case d.Verdict == hook.Retry, d.Verdict == hook.Escalate:
		r.warn(fmt.Sprintf("hook %q decided to %s, which a conversation that does not fit cannot", item.Shown(d.HookID), d.Verdict))
	}
	return nil
}

// ruleOnHandoff asks the hooks about a handoff, which one of them can call off.
func (r *run) ruleOnHandoff(ctx context.Context) error {
	used, _ := r.contextUse()
	d, err := r.control(ctx, hook.EventBeforeHandoff, map[string]any{"tokens_used": used})
	if err == nil && d.Verdict == hook.Abort {
		return &noHandoffError{why: &vetoError{hook: d.HookID, says: saysOf(d)}, advice: contextAdvice}
	}
	return err
}

// afterStep fires the hooks behind a turn that has gone well. Done is how the turn
// ended the thread, or nil: then a person can be asked whether there is another.
func (r *run) afterStep(ctx context.Context, done *ended) *ended {
	if done != nil && (done.err != nil || done.handoff != nil) {
		return done
	}
	d, err := r.control(ctx, hook.EventAfterStep, nil)
	switch {
	case err != nil && done != nil && ctx.Err() != nil:
		return done // an end that came in time counts
	case err != nil:
	case d.Verdict == hook.Fail:
		err = failed(d, nil)
	case d.Verdict == hook.Abort:
		err = aborted(d)
	case d.Verdict == hook.Escalate && done == nil && !r.last:
		err = &escalated{hook: d.HookID, err: fmt.Errorf(
			"%w: a hook had it wait after turn %d, and nobody let it go on", thread.ErrCancelled, r.cost.Turns)}
	}
	if err != nil {
		return &ended{err: err, doing: r.doing()}
	}
	return done
}

// returned fires the hooks behind outputs that were accepted.
func (r *run) returned(ctx context.Context, done *ended) (*ended, error) {
	if done.blocked != "" {
		return done, nil
	}
	err := r.notify(ctx, hook.EventDirectiveReturn, map[string]any{"outputs": done.outputs})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return done, nil
}
