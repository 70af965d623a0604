package loop

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Types of failures that are answers. Like the vendors' own they can be named
// in error_classification.yaml.
const (
	typeRefusal = "refusal"
	typeEmpty   = "empty_answer"
	// typeFailed: the provider has broken the answer off, in its own word for why.
	typeFailed = "failed_answer"
	// typeAbsurdUsage: more tokens are reported than the call can have used.
	typeAbsurdUsage = "absurd_usage"
)

// failure is a call of the model that gave nothing to go on with.
type failure struct {
	err     error         // for people
	api     *llm.APIError // what is classified
	reply   bool          // it is an answer
	rule    config.ErrorPattern
	call    *call
	attempt int // in a row, of this model, from 1
	turn    int
}

// failureOf is what is wrong with a call; nil when nothing is. A call that was
// interrupted, or failed for a reason of this side, is no failure of the model:
// its error is returned as it is.
func (r *run) failureOf(c *call) (*failure, error) {
	f := &failure{err: c.err, call: c, attempt: r.recovery.failing + 1, turn: r.cost.Turns + 1}
	switch {
	case c.err != nil:
		api, ok := apiError(c.err)
		if !ok {
			return nil, c.err
		}
		f.api = api
	case c.answer.StopReason == llm.StopRefusal:
		f.setAnswer(refused(c.answer), typeRefusal)
	case c.answer.StopReason == llm.StopFailed:
		f.setAnswer(inWord(errFailed, c.answer), typeFailed)
	case r.saysNothing(c.answer):
		f.setAnswer(inWord(errEmpty, c.answer), typeEmpty)
	default:
		return nil, nil
	}
	rules, err := r.errorRules()
	if err != nil {
		return nil, fmt.Errorf("%w (needed because of: %w)", err, f.err)
	}
	f.rule = rules.Classify(r.failureData(f))
	return f, nil
}

// setAnswer makes an answer a failure. Its turn has been counted.
func (f *failure) setAnswer(err error, typ string) {
	f.reply, f.err, f.turn = true, err, f.turn-1
	f.api = &llm.APIError{Status: http.StatusOK, Type: typ, Code: f.call.answer.StopWord, Message: err.Error()}
}

// stands reports whether the failure is an answer that can be let through. One that the
// provider has broken off is never taken for an answer.
func (f *failure) stands() bool { return f.reply && f.api.Type != typeFailed }

// saying is the failure in other words, unless there are none.
func (f *failure) saying(words string) *failure {
	if words == "" {
		return f
	}
	said := *f
	said.err = &toldError{says: words, cause: f.err}
	return &said
}

// errorRules are read when they are first needed: most threads never do.
func (r *run) errorRules() (config.ErrorRules, error) {
	if r.recovery.rules != nil {
		return *r.recovery.rules, nil
	}
	rules, warnings, err := r.Settings.ErrorRules()
	if err != nil {
		return rules, err
	}
	for _, w := range warnings {
		r.Log.Warn().Msg(w)
	}
	r.recovery.rules = &rules
	return rules, nil
}

// failureData is what conditions look at.
func (r *run) failureData(f *failure) map[string]any {
	headers := make(map[string]any, len(f.api.Header))
	for name, values := range f.api.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	choice := r.model.choice
	return map[string]any{
		"status_code": f.api.Status,
		"error":       map[string]any{"type": f.api.Type, "code": f.api.Code, "message": f.api.Message},
		"headers":     headers, "model": choice.Model.ID, "provider": choice.Provider,
		"attempt": f.attempt, "cancelled": false,
	}
}

// hookData is what the hooks of the event "error" are told: the failure and how
// it was classified.
func (r *run) hookData(f *failure) map[string]any {
	choice := r.model.choice
	return map[string]any{
		"error": map[string]any{
			"source": "model", "type": f.api.Type, "code": f.api.Code, "message": f.err.Error(), "status_code": f.api.Status,
			"model": choice.Model.ID, "provider": choice.Provider, "attempt": f.attempt, "turn": f.turn,
		},
		"classification": map[string]any{"category": f.rule.Category, "retryable": f.rule.Retryable, "pattern": f.rule.ID},
	}
}
