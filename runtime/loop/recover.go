package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// maxFailures ends a thread: so many calls of a model in a row have failed.
const maxFailures = 3

// maxEmpty is how many empty answers in a row there may be: the model is reminded
// after all but the last.
const maxEmpty = 2

var (
	// errEmpty is the end of a thread whose model has nothing to say.
	errEmpty = errors.New("the model gave an empty answer")
	// errFailed is the end of a thread whose provider breaks its answers off.
	errFailed = errors.New("the provider broke the answer off")
)

// recovery is what is known of the failures of a thread's model, and the ways
// to deal with them.
type recovery struct {
	failing int                // failures in a row of the model that is asked
	empty   int                // empty answers in a row
	tried   []attempts         // since the last answer, by model
	rules   *config.ErrorRules // nil: not read yet
	// hooks says what those of the event "error" have decided; nil: there are none.
	hooks func(ctx context.Context, data map[string]any) (hookDecision, error)
	pause func(context.Context, time.Duration) error
	draw  func() float64 // at least 0, less than 1
}

func newRecovery() recovery { return recovery{pause: pause, draw: rand.Float64} }

// over begins anew after an answer that can be used.
func (rc *recovery) over() { rc.failing, rc.tried = 0, nil }

// attempts are failed calls in a row of one model.
type attempts struct {
	model    string // "provider/model"
	times    int
	category string // of the last
	said     string // by the last
	waited   time.Duration
}

func (a attempts) String() string {
	times := "once"
	if a.times > 1 {
		times = fmt.Sprintf("%d times", a.times)
	}
	if a.waited > 0 {
		return fmt.Sprintf("%s %s (%s; %s of waiting between)", a.model, times, a.category, a.waited.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s %s (%s)", a.model, times, a.category)
}

// hookDecision is what a hook decided about a failure. The zero value leaves it to
// the default.
type hookDecision struct {
	fail  bool           // the thread ends with the failure
	says  string         // in place of the failure's own words; may be empty
	ask   string         // id of the hook that wants a person to decide
	end   error          // the thread ends with this
	again bool           // the model is asked again, unless it has failed too often
	wait  *time.Duration // before that, or before what the default repeats; nil: as the rule of the failure says
}

// callError is the end of a thread whose model could not be made to answer.
type callError struct {
	failure error               // the last
	rule    config.ErrorPattern // without a category when a hook gave another end
	turn    int
	tried   []attempts
	note    string // why it was not tried again; may be empty
	passing bool   // another attempt may get further
}

func (e *callError) Error() string {
	said := joined(e.failure.Error(), e.note)
	for _, a := range e.tried[:max(0, len(e.tried)-1)] {
		said += fmt.Sprintf("; before that %s failed with: %s", a.model, a.said)
	}
	return said
}

func (e *callError) Unwrap() error { return e.failure }

// doing says what was tried, for the parent.
func (e *callError) doing() string {
	texts := make([]string, len(e.tried))
	for i, a := range e.tried {
		texts[i] = a.String()
	}
	return fmt.Sprintf("asking the model in turn %d: %s", e.turn, strings.Join(texts, ", then "))
}

// recoverFrom deals with a failure: a hook's decision goes first, then what its rule
// says holds. It reports whether the model is to be asked again. If not, and
// without an error, the failure is an answer to be taken as it is.
func (r *run) recoverFrom(ctx context.Context, f *failure) (again bool, err error) {
	r.recovery.failing++
	r.count(f)
	if err := r.putOnRecord(f); err != nil {
		return false, err
	}
	told, err := r.ruleOn(ctx, f)
	switch {
	case err != nil:
		return false, err
	case told.end != nil:
		return false, r.giveUp(&failure{err: told.end, turn: f.turn}, "")
	case told.fail:
		return false, asHookSays(f.saying(told.says), r.recovery.tried)
	case told.ask != "":
		return false, &escalated{hook: told.ask, err: asHookSays(f, r.recovery.tried)}
	}
	wait, repeat := r.waitFor(f, told)
	note := ""
	if repeat && r.mayRepeat(f) {
		left, bounded := deadlineIn(ctx)
		if !bounded || wait < left {
			return true, r.askAgain(ctx, f, wait)
		}
		note = fmt.Sprintf("not tried again: that would be in %s, and %s are left of the thread's time",
			wait.Round(time.Second), left.Round(time.Second))
	}
	return r.withoutRepeat(ctx, f, note)
}

// ruleOn asks the hooks of the event "error".
func (r *run) ruleOn(ctx context.Context, f *failure) (hookDecision, error) {
	if r.recovery.hooks == nil {
		return hookDecision{}, nil
	}
	return r.recovery.hooks(ctx, r.hookData(f))
}

// withoutRepeat is what remains when the model is not asked again: to take an
// answer as it is, to ask the other model, or to end the thread.
func (r *run) withoutRepeat(ctx context.Context, f *failure, note string) (again bool, err error) {
	switch {
	case f.stands():
		return false, r.letThrough(f)
	case f.reply && r.cost.Turns >= r.meta.Limits.Turns:
		return false, r.giveUp(f, "no turn is left")
	}
	turned, why, err := r.fallBack(ctx, f)
	if turned && err == nil {
		return true, f.endTurn(r)
	}
	if err != nil {
		return false, err
	}
	if f.rule.Category == config.CategoryContext {
		return false, &fullError{r.giveUp(f, why)}
	}
	return false, r.giveUp(f, joined(note, why))
}

func joined(notes ...string) string {
	var said []string
	for _, n := range notes {
		if n != "" {
			said = append(said, n)
		}
	}
	return strings.Join(said, "; ")
}

// letThrough takes an answer that is a failure as it is, but for empty ones
// without end: the thread ends, in error unless its model has done anything.
func (r *run) letThrough(f *failure) error {
	if f.api.Type != typeEmpty {
		r.recovery.over()
		return nil
	}
	r.recovery.empty++
	switch {
	case r.recovery.empty < maxEmpty:
	case r.conversation.acted():
		r.nudges = prompt.MaxNudges // one more reminder would not help
	default:
		if err := r.take(f.call); err != nil {
			return err
		}
		return r.giveUp(f, "it was reminded, and has said nothing yet")
	}
	r.recovery.over()
	return nil
}

// saysNothing reports whether an answer gives nothing to go on with.
func (r *run) saysNothing(a llm.Response) bool {
	if a.StopReason == llm.StopMaxTokens || r.partial != "" || len(toolCalls(a)) > 0 || llm.TextOf(a.Blocks) != "" {
		r.recovery.empty = 0
		return false
	}
	return true
}

// giveUp is the end of the thread.
func (r *run) giveUp(f *failure, note string) error {
	return &callError{
		failure: f.err, rule: f.rule, turn: f.turn, tried: r.recovery.tried, note: note, passing: f.rule.Retryable && !f.stands(),
	}
}

// asHookSays is the end of the thread by a hook: no other attempt is made either.
func asHookSays(f *failure, tried []attempts) error {
	return &callError{failure: f.err, rule: f.rule, turn: f.turn, tried: tried}
}

// mayRepeat reports whether the model has not failed too often yet. An answer
// that is thrown away was a turn.
func (r *run) mayRepeat(f *failure) bool {
	if f.reply && r.cost.Turns >= r.meta.Limits.Turns {
		return false
	}
	return f.attempt < min(maxFailures, r.Settings.Retry.MaxAttempts)
}

// waitFor is how long to wait before the next call, by the hook's decision or the rule of
// a failure; false: there is to be none.
func (r *run) waitFor(f *failure, hook hookDecision) (time.Duration, bool) {
	if !f.rule.Retryable && !hook.again {
		return 0, false
	}
	if hook.wait != nil {
		return *hook.wait, true
	}
	asked := func(header string) time.Duration { return llm.Asked(f.api.Header, header, r.Now()) }
	draw := r.recovery.draw()
	wait, ok := backoff(policyOf(f.rule.ErrorClass, r.Settings.Retry), f.attempt-1, asked, draw)
	if !ok && hook.again { // a rule that never repeats does not say when to
		return backoff(policyOf(config.ErrorClass{}, r.Settings.Retry), f.attempt-1, asked, draw)
	}
	return wait, ok
}

// deadlineIn is how long the thread may still work.
func deadlineIn(ctx context.Context) (time.Duration, bool) {
	deadline, ok := ctx.Deadline()
	return time.Until(deadline), ok
}

// askAgain waits until the model may be asked again.
func (r *run) askAgain(ctx context.Context, f *failure, wait time.Duration) error {
	r.Log.Warn().Err(f.err).Int("turn", f.turn).Str("category", f.rule.Category).Dur("wait_ms", wait).
		Msg("the model is asked again")
	err := r.Transcript.Append(thread.EventRetry, transcript.Retry{
		Turn: f.turn, Attempt: f.attempt + 1, Model: r.model.choice.Ref(), DelayMS: wait.Milliseconds(), Reason: f.rule.Category,
	})
	if err != nil {
		return err
	}
	if err := f.endTurn(r); err != nil {
		return err
	}
	r.recovery.tried[len(r.recovery.tried)-1].waited += wait
	return r.recovery.pause(ctx, wait)
}

// endTurn puts the end of a turn on disk whose answer is thrown away: nobody else does.
func (f *failure) endTurn(r *run) error {
	if !f.reply {
		return nil
	}
	return r.checkpoint(r.Transcript.Checkpoint)
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// count adds a failure to what was tried.
func (r *run) count(f *failure) {
	model := r.model.choice.Ref()
	tried := r.recovery.tried
	if last := len(tried) - 1; last < 0 || tried[last].model != model {
		tried = append(tried, attempts{model: model})
	}
	last := &tried[len(tried)-1]
	last.times++
	last.category, last.said = f.rule.Category, f.err.Error()
	r.recovery.tried = tried
}

func (r *run) putOnRecord(f *failure) error {
	return r.Transcript.Append(thread.EventErrorClassified, transcript.ErrorClassified{
		Turn: f.turn, Attempt: f.attempt, Model: r.model.choice.Ref(), Category: f.rule.Category, Pattern: f.rule.ID,
		Status: f.api.Status, Type: f.api.Type, Code: f.api.Code, Message: f.err.Error(),
		Spend: f.call.charged, Tokens: f.call.answer.Usage.ContextTokens(), Took: f.call.took,
	})
}

// apiError is the provider's failure in an error.
func apiError(err error) (*llm.APIError, bool) {
	var api *llm.APIError
	ok := errors.As(err, &api)
	return api, ok
}

// refused is the end of a thread whose model, or a filter of its provider's, declines
// the task, in its words.
func refused(a llm.Response) error {
	err := inWord(errRefused, a)
	if words := strings.TrimSpace(llm.TextOf(a.Blocks)); words != "" {
		return fmt.Errorf("%w: %s", err, words)
	}
	return fmt.Errorf("%w, without a word", err)
}

// inWord is err with the vendor's word for why the answer ended, where that says more.
func inWord(err error, a llm.Response) error {
	if a.StopWord == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, a.StopWord)
}
