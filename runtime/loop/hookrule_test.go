package loop

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// flaky is the tool test/once, which fails so many times.
func (h *house) flaky(failures int) *int {
	calls := 0
	h.tools.more = []tool.Tool{tool.New(tool.Definition{ID: "test/once", Description: "x"}, func(context.Context, tool.Env, word) (any, error) {
		if calls++; calls <= failures {
			return nil, errors.New("disk full")
		}
		return "it worked", nil
	})}
	return &calls
}

// TestDecisionsAboutTools: what a hook decides about a tool call that failed.
func TestDecisionsAboutTools(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const full = `{all: [{path: error.message, op: contains, value: disk full}, {path: error.tool, op: eq, value: test_once}, {path: classification.category, op: eq, value: tool}]}`
	for name, c := range map[string]struct {
		verdict  string // with params
		answer   thread.Decision
		failures int
		calls    int
		state    thread.State
		says     string // the result, or the error
		code     string
	}{
		"none":                {failures: 9, calls: 1, state: thread.Completed, says: "disk full"},
		"continue":            {verdict: "continue", failures: 9, calls: 1, state: thread.Completed, says: "disk full"},
		"retry":               {verdict: "retry, delay_seconds: 0.001", failures: 1, calls: 2, state: thread.Completed, says: "it worked"},
		"retry after text":    {verdict: "retry, delay_seconds: '0.001'", failures: 1, calls: 2, state: thread.Completed, says: "it worked"},
		"retry in vain":       {verdict: "retry", failures: 9, calls: 2, state: thread.Completed, says: "disk full"},
		"fail":                {verdict: "fail", failures: 9, calls: 1, state: thread.Error, says: "disk full", code: "tool_failed"},
		"fail with a message": {verdict: "fail, error: 'no ${error.code} today'", failures: 9, calls: 1, state: thread.Error, says: "no tool_failed today", code: "tool_failed"},
		"abort":               {verdict: "abort, error: enough", failures: 9, calls: 1, state: thread.Cancelled, says: `cancelled by hook "h": enough`, code: "cancelled"},
		"escalate, go on":     {verdict: "escalate", answer: thread.GoOn, failures: 1, calls: 2, state: thread.Completed, says: "it worked"},
		"escalate, stop":      {verdict: "escalate", answer: thread.Stop, failures: 9, calls: 1, state: thread.Error, says: "disk full", code: "tool_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			h.script(toTools)
			calls := h.flaky(c.failures)
			if c.verdict != "" {
				verdict, params, _ := strings.Cut(c.verdict, ",")
				if params != "" {
					params = "," + params
				}
				h.hooks(inHooks("h", "error", full, decides(verdict, params)))
			}
			id := h.register(job{})
			rec, _ := h.answering(id, answered(c.answer)...)
			if rec.Status != c.state || *calls != c.calls {
				t.Fatalf("%s %+v after %d calls", rec.Status, rec.Outcome.Error, *calls)
			}
			if c.state == thread.Completed {
				if got := h.results(id)[0]; !strings.Contains(got.Text, c.says) || got.IsError != (c.says == "disk full") {
					t.Errorf("result %+v", got)
				}
				return
			}
			if p := rec.Outcome.Error; !strings.Contains(p.Message, c.says) || p.Code != c.code {
				t.Errorf("%+v", p)
			}
		})
	}
}

// answered are the answers of a person, if there is to be one.
func answered(d thread.Decision) []thread.Answer {
	if d == "" {
		return nil
	}
	return []thread.Answer{{Decision: d, By: "Ada"}}
}

// TestDecisionsAboutTheModel: what a hook decides about a call of the model that
// failed, which by its rule is not repeated.
func TestDecisionsAboutTheModel(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const auth = "{path: classification.category, op: eq, value: auth}"
	const once = "turns:\n  - {times: 1, error: {status: 401, type: authentication_error, message: wrong key}}\n  - text: Done.\n"
	const always = "turns:\n  - {error: {status: 401, type: authentication_error, message: wrong key}}\n"
	for name, c := range map[string]struct {
		script, verdict, params string
		when                    string // "" for auth
		answer                  thread.Decision
		requests                int
		state                   thread.State
		code, says              string
	}{
		"none":            {script: once, requests: 1, state: thread.Error, code: "provider_auth", says: "wrong key"},
		"continue":        {script: once, verdict: "continue", requests: 1, state: thread.Error, code: "provider_auth", says: "wrong key"},
		"retry":           {script: once, verdict: "retry", params: ", delay_seconds: 0.001", requests: 2, state: thread.Completed},
		"retry in vain":   {script: always, verdict: "retry", params: ", delay_seconds: 0", requests: 3, state: thread.Error, code: "provider_auth", says: "wrong key"},
		"fail":            {script: once, verdict: "fail", params: ", error: 'ask Ada about ${error.provider}'", requests: 1, state: thread.Error, code: "provider_auth", says: "ask Ada about fake"},
		"abort":           {script: once, verdict: "abort", requests: 1, state: thread.Cancelled, code: "cancelled", says: `by hook "h"`},
		"escalate, go on": {script: once, verdict: "escalate", answer: thread.GoOn, requests: 2, state: thread.Completed},
		"anew": { // earlier failures do not count any more
			script: "turns:\n  - {times: 4, error: {status: 529, type: overloaded_error, message: busy}}\n  - text: Done.\n",
			when:   "{path: error.attempt, op: eq, value: 3}", verdict: "escalate", answer: thread.GoOn, requests: 5, state: thread.Completed,
		},
		"escalate, stop": {script: once, verdict: "escalate", answer: thread.Stop, requests: 1, state: thread.Error, code: "provider_auth", says: "wrong key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			h.script(c.script)
			if c.verdict != "" {
				h.hooks(inHooks("h", "error", cmp.Or(c.when, auth), decides(c.verdict, c.params)))
			}
			id := h.register(job{capabilities: []string{}})
			rec, _ := h.answering(id, answered(c.answer)...)
			if p := rec.Outcome.Error; rec.Status != c.state || len(h.server.Requests()) != c.requests ||
				p != nil && (p.Code != c.code || !strings.Contains(p.Message, c.says)) {
				t.Errorf("%s %+v after %d requests", rec.Status, p, len(h.server.Requests()))
			}
		})
	}
}

// TestDecisionsAboutLimits: a hook goes before what the settings say.
func TestDecisionsAboutLimits(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const condition = "{all: [{path: limit_code, op: eq, value: turns_exceeded}, {path: current_value, op: gte, value: 1}, {path: current_max, op: lt, value: 2}]}"
	way := toLimits["turns_exceeded"]
	for name, c := range map[string]struct {
		verdict, params string
		answers         []thread.Answer
		ask             bool // the settings want a person to be asked
		state           thread.State
		says            string
	}{
		"none":            {state: thread.Error, says: "turns_exceeded"},
		"continue":        {verdict: "continue", state: thread.Completed, says: "finish was decided by hook"},
		"fail":            {verdict: "fail", params: ", error: 'no more than ${current_max}'", ask: true, state: thread.Error, says: "no more than 1"},
		"abort":           {verdict: "abort", ask: true, state: thread.Cancelled, says: "by hook"},
		"retry":           {verdict: "\"${x || 're'}try\"", state: thread.Error, says: "turns_exceeded"},
		"escalate, raise": {verdict: "escalate", answers: []thread.Answer{{Decision: thread.Raise, Limits: way.raise, By: "Ada"}}, state: thread.Completed},
		"escalate, stop":  {verdict: "escalate", answers: answered(thread.Stop), state: thread.Error, says: "turns_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			if !c.ask {
				h.settings.OnLimit.Action = "stop"
			}
			h.script(way.script)
			if c.verdict != "" {
				h.hooks(inHooks("h", "limit", condition, decides(c.verdict, c.params)))
			}
			id := h.register(job{limits: way.limits})
			rec, _ := h.answering(id, c.answers...)
			told := strings.Join(rec.Outcome.Warnings, "\n")
			if p := rec.Outcome.Error; p != nil {
				told += p.Code + p.Message
			}
			if rec.Status != c.state || !strings.Contains(told, c.says) {
				t.Errorf("%s: %s", rec.Status, told)
			}
			if order, _ := h.fired(id); (len(order) > 0) != (c.verdict != "") {
				t.Errorf("fired %s", order)
			}
		})
	}
}

// TestContinueWithinATurn: the turn that a limit has broken off is signed before the last
// one, though nobody was asked between them.
func TestContinueWithinATurn(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := asking(t)
	h.settings.OnLimit.Action = "stop"
	way := toLimits["duration_exceeded in a tool"]
	h.script(way.script)
	h.hooks(inHooks("h", "limit", "{path: limit_code, op: eq, value: duration_exceeded}", decides("continue", "")))
	rec := h.run(job{limits: way.limits})
	if rec.Status != thread.Completed || rec.Cost.Turns != 2 {
		t.Errorf("%s %+v after %d turns", rec.Status, rec.Outcome, rec.Cost.Turns)
	}
}

// TestAfterStep: a hook behind each turn knows what the thread has cost, and can
// end it.
func TestAfterStep(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const dear = "{all: [{path: cost.turns, op: eq, value: 1}, {path: cost.spend, op: gt, value: 0}]}"
	for name, c := range map[string]struct {
		verdict, params string
		answer          thread.Decision
		turns           int
		state           thread.State
		code            string
	}{
		"continue":        {verdict: "continue", turns: 2, state: thread.Completed},
		"fail":            {verdict: "fail", params: ", error: 'too dear: ${cost.spend}'", turns: 1, state: thread.Error, code: "failed_by_hook"},
		"abort":           {verdict: "abort", turns: 1, state: thread.Cancelled, code: "cancelled"},
		"escalate, go on": {verdict: "escalate", answer: thread.GoOn, turns: 2, state: thread.Completed},
		"escalate, stop":  {verdict: "escalate", answer: thread.Stop, turns: 1, state: thread.Cancelled, code: "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			h.script(toTools)
			h.flaky(0)
			h.hooks(inHooks("h", "after_step", dear, decides(c.verdict, c.params)),
				inHooks("each", "after_step", "", decides("continue", "")))
			id := h.register(job{})
			rec, _ := h.answering(id, answered(c.answer)...)
			if p := rec.Outcome.Error; rec.Status != c.state || rec.Cost.Turns != c.turns || p != nil && p.Code != c.code {
				t.Errorf("%s %+v after %d turns", rec.Status, p, rec.Cost.Turns)
			}
			if order, _ := h.fired(id); len(order) != c.turns {
				t.Errorf("fired %s", order)
			}
		})
	}
}

// TestContextLimitHook: nothing can go on, but what is said of it can be decided.
func TestContextLimitHook(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const tooLong = "turns:\n  - {error: {status: 400, type: invalid_request_error, message: 'prompt is too long: 250000 tokens > 200000 maximum'}}\n"
	for verdict, want := range map[string]struct {
		state thread.State
		code  string
	}{
		"fail": {thread.Error, "context_full"}, "abort": {thread.Cancelled, "cancelled"},
		"continue": {thread.Error, "context_full"}, "retry": {thread.Error, "context_full"},
	} {
		h := newHouse(t)
		h.script(tooLong)
		h.hooks(inHooks("h", "context_limit_reached", "{all: [{path: usage_ratio, op: gt, value: 0}, {path: tokens_used, op: gt, value: 0}, {path: tokens_limit, op: eq, value: 200000}]}",
			decides(verdict, "")))
		rec := h.run(job{capabilities: []string{}})
		if p := rec.Outcome.Error; rec.Status != want.state || p.Code != want.code || (len(rec.Outcome.Warnings) > 0) != (verdict == "retry") {
			t.Errorf("%s: %s %+v %q", verdict, rec.Status, p, rec.Outcome.Warnings)
		}
		if order, _ := h.fired(rec.ThreadID); len(order) != 1 {
			t.Errorf("%s: fired %s", verdict, order)
		}
	}
}

// The hooks of a running thread are told what package hook says of each event.
func TestEveryEventTellsOfTheThread(t *testing.T) {
	t.Parallel()
	data, err := (&run{}).about(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hook.EventAfterStep.Data() {
		if _, told := data[name]; !told {
			t.Errorf("%s is not told", name)
		}
	}
	if len(data) != len(hook.EventAfterStep.Data()) {
		t.Errorf("told is %v", data)
	}
}
