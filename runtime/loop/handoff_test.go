package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// filling is a script whose first turn calls a tool and leaves the context window,
// of 200 000 tokens, with so many in use; the next ones end the thread.
func filling(tokens int) string {
	return fmt.Sprintf("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: %d, output_tokens: 100}}\n"+
		"  - text: Done.\n", tokens-100)
}

// nearlyFull reaches the threshold.
const nearlyFull = 180_000

// watching are hooks that put on record which event fires when.
func watching(h *house, more ...string) {
	list := slices.Clone(more)
	for _, e := range []hook.Event{hook.EventAfterStep, hook.EventBeforeHandoff, hook.EventContextLimitReached, hook.EventAfterComplete} {
		list = append(list, inHooks("saw_"+string(e), string(e), "", "primary: search, params: {query: x}"))
	}
	h.hooks(list...)
}

// saw are the events that fired hooks, in order, as runs writes them.
func (h *house) saw(id thread.ID) string {
	h.t.Helper()
	order, by := h.fired(id)
	var all []string
	for _, fired := range order {
		if by[fired].Error != "" {
			h.t.Errorf("%+v", by[fired])
		}
		if event, ok := strings.CutPrefix(fired, "saw_"); ok {
			all = append(all, event)
		}
	}
	return runs(all)
}

var searching = []string{"rye.search.*", "rye.execute.tool.test.*"}

// TestHandoff: a thread whose context window is nearly full after a turn hands
// over what it has, ends as continued, and its successor is started.
func TestHandoff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.script(filling(nearlyFull))
	watching(h,
		inHooks("used", "before_handoff", "{all: [{path: tokens_used, op: eq, value: 180003}, {path: cost.turns, op: eq, value: 1}, {path: thread_id, op: exists}]}", "primary: search, params: {query: x}"),
		inHooks("continued", "after_complete", "{path: status, op: eq, value: continued}", "primary: search, params: {query: x}"))
	vault := secret.New(map[string]string{"token": "abcdefgh-12345"})
	h.finisher.Mask = vault
	h.change = func(r *run) { r.Secrets = vault }
	j := withSecret()
	j.capabilities = searching
	rec := h.run(j)
	if rec.Status != thread.Continued || rec.ContinuationThreadID != m.next || rec.Outcome.Error != nil ||
		rec.Outcome.Handoff == nil || *rec.Outcome.Handoff != (thread.Handoff{NewThreadID: m.next, TrailingTurns: 2}) {
		t.Fatalf("%s %+v, continued by %q, want %q", rec.Status, rec.Outcome, rec.ContinuationThreadID, m.next)
	}
	if m.started != 1 || m.hurried || len(m.givenUp) > 0 || len(h.server.Requests()) != 1 {
		t.Errorf("started %d times, given up %v, %d calls of the model", m.started, m.givenUp, len(h.server.Requests()))
	}
	if got := h.saw(rec.ThreadID); got != "after_step before_handoff after_complete" {
		t.Errorf("fired %s", got)
	}
	if _, by := h.fired(rec.ThreadID); by["used"].HookID == "" || by["continued"].HookID == "" {
		t.Errorf("fired %+v", by)
	}
	all := runs(h.eventTypes(rec.ThreadID))
	if !strings.HasSuffix(all, "tool_call_result hook_fired checkpoint hook_fired*4 checkpoint thread_handoff checkpoint") {
		t.Errorf("events %s", all)
	}
	got := m.requests[0]
	if got.ThreadID != rec.ThreadID || got.Used.Turns != 1 || got.Used.Tokens != nearlyFull || got.Used.Seconds <= 0 || got.Ceiling != 16_000 ||
		got.Summary != "" || got.SummaryID != "" || got.Secrets["token"] != "abcdefgh-12345" || m.turns != 1 {
		t.Errorf("asked for %+v behind turn %d", got, m.turns)
	}
	for _, part := range []string{`<directive name="task">`, "Do the task for {input:token}.", "{secret:token}"} {
		if !strings.Contains(got.Task, part) {
			t.Errorf("%q is not in the task\n%s", part, got.Task)
		}
	}
}

// TestThreshold: what the provider reports and a token for every four characters
// that came after count, of the window of the model that is asked.
func TestThreshold(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		tokens    int
		result    int // characters, of two bytes
		threshold float64
		change    func(*job)
		continued bool
	}{
		"below":                 {tokens: nearlyFull - 10, threshold: 0.9},
		"at":                    {tokens: nearlyFull, threshold: 0.9, continued: true},
		"other threshold":       {tokens: 100_000, threshold: 0.5, continued: true},
		"with the result below": {tokens: nearlyFull - 510, result: 1990, threshold: 0.9},
		"with the result at":    {tokens: nearlyFull - 500, result: 2000, threshold: 0.9, continued: true},
		"a limit goes first":    {tokens: nearlyFull, threshold: 0.9, change: func(j *job) { j.limits = func(l *thread.Limits) { l.Turns = 1 } }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			m := handsOver(h)
			h.settings.Continuation.TriggerThreshold = c.threshold
			script := filling(c.tokens)
			if c.result > 0 {
				h.tools.big = strings.Repeat("é", c.result)
				h.tools.act = func() error { return nil }
				h.settings.Results.MaxCharsWhenFull = 2400
				script = strings.ReplaceAll(script, "test_echo, input: {word: a}", "test_act")
			}
			h.script(script)
			j := job{}
			if c.change != nil {
				c.change(&j)
			}
			rec := h.run(j)
			if continued := rec.Status == thread.Continued; continued != c.continued || len(m.requests) > 0 != c.continued {
				t.Errorf("%s %+v, %d requests", rec.Status, rec.Outcome.Error, len(m.requests))
			}
		})
	}
}

// TestWithoutMaker: a thread that cannot hand over goes on.
func TestWithoutMaker(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(filling(nearlyFull))
	watching(h)
	rec := h.run(job{capabilities: searching})
	if got := h.saw(rec.ThreadID); rec.Status != thread.Completed || got != "after_step*2 after_complete" {
		t.Errorf("%s, fired %s", rec.Status, got)
	}
}

// TestHandoffAtTheWire: a conversation that the provider refuses as too long is
// handed over, unless nothing has come of it yet.
func TestHandoffAtTheWire(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const tooLong = "error: {status: 400, type: invalid_request_error, code: context_length_exceeded, message: 'prompt is too long'}"
	for _, protocol := range []string{"anthropic", "openai"} {
		for _, turn := range []int{1, 2} {
			h := newHouse(t)
			m := handsOver(h)
			h.speak(protocol, fmt.Sprintf("turns:\n  - {match: {turn: %d}, %s}\n  - {tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 100, output_tokens: 10}}\n", turn, tooLong))
			watching(h)
			rec := h.run(job{capabilities: searching})
			if turn == 2 {
				if rec.Status != thread.Continued || m.started != 1 || m.requests[0].Used.Turns != 1 {
					t.Errorf("%s: %s %+v, started %d times", protocol, rec.Status, rec.Outcome.Error, m.started)
				}
				if got := h.saw(rec.ThreadID); got != "after_step before_handoff after_complete" {
					t.Errorf("%s: fired %s", protocol, got)
				}
				continue
			}
			p := rec.Outcome.Error
			if rec.Status != thread.Error || p.Code != "context_full" || !strings.Contains(p.Message, "has not had a turn of its own") || len(m.requests) > 0 {
				t.Errorf("%s: %s %+v", protocol, rec.Status, p)
			}
			if got := h.saw(rec.ThreadID); got != "context_limit_reached after_complete" {
				t.Errorf("%s: fired %s", protocol, got)
			}
		}
	}
}

// TestNoHandoff: why there was none, and what follows.
func TestNoHandoff(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	veto := inHooks("keep", "before_handoff", "", decides("abort", ", error: 'not today'"))
	for name, c := range map[string]struct {
		tokens int
		hooks  []string
		change func(*house, *job)
		state  thread.State
		code   string
		says   []string
		saw    string
		made   int // requests
	}{
		"vetoed, goes on": {tokens: nearlyFull, hooks: []string{veto}, state: thread.Completed, saw: "context_limit_reached after_step after_complete"},
		"vetoed, does not fit": {
			tokens: 199_990, hooks: []string{veto}, state: thread.Error, code: "context_full",
			says: []string{"context window is full", `hook "keep" called it off: not today`, "split the task"},
			saw:  "context_limit_reached*2 after_complete",
		},
		"vetoed, and a hook ends it": {
			tokens: nearlyFull, hooks: []string{veto, inHooks("end", "context_limit_reached", "{path: usage_ratio, op: gte, value: 0.9}", decides("fail", ", error: enough"))},
			state: thread.Error, code: "context_full", says: []string{"enough"}, saw: "after_complete",
		},
		"vetoed, and a hook cancels it": {
			tokens: nearlyFull, hooks: []string{veto, inHooks("end", "context_limit_reached", "", decides("abort", ""))},
			state: thread.Cancelled, code: "cancelled", saw: "after_complete",
		},
		"cannot be made": {
			tokens: nearlyFull, change: func(h *house, _ *job) {
				h.maker.fails = func(thread.ID) error { return fmt.Errorf("no folder: %w", context.Canceled) }
			},
			state: thread.Error, code: "context_full", says: []string{"about 180003 of 200000", "its successor could not be made: no folder", "split the task"},
			saw: "before_handoff after_complete context_limit_reached after_complete", made: 1,
		},
		"cancelled meanwhile": {
			tokens: nearlyFull, change: func(h *house, _ *job) {
				h.maker.fails = func(id thread.ID) error {
					_, err := h.store.RequestCancel(context.Background(), id, "", time.Now())
					return errors.Join(errors.New("it is to stop"), err)
				}
			},
			state: thread.Cancelled, code: "cancelled", saw: "before_handoff after_complete*2", made: 1,
		},
		"the chain is too long": {
			tokens: nearlyFull, change: func(h *house, _ *job) {
				h.settings.Continuation.MaxChain = 0
			},
			state: thread.Error, code: "context_full", says: []string{"continuation.max_chain allows no more handoffs: there were 0 of 0", "raise continuation.max_chain"},
			saw: "context_limit_reached after_complete",
		},
		"the orchestrator finds the chain too long": {
			tokens: nearlyFull, change: func(h *house, _ *job) {
				h.maker.fails = func(thread.ID) error { return fmt.Errorf("chain: %w", &handoff.ChainError{Handoffs: 20, Max: 20}) }
			},
			state: thread.Error, code: "context_full", says: []string{"there were 20 of 20", "raise continuation.max_chain"},
			saw: "before_handoff after_complete context_limit_reached after_complete", made: 1,
		},
		"no way to go on": {
			tokens: nearlyFull, change: func(h *house, j *job) {
				j.meta = h.withTask("<continuation_directive>test/none</continuation_directive>")
			},
			state: thread.Error, code: "context_full", says: []string{"would not know how to go on", "test/none"}, saw: "context_limit_reached after_complete",
		},
		"no room for a successor": {
			tokens: nearlyFull, change: func(h *house, _ *job) { h.settings.Continuation.ResumeCeilingTokens = handoff.MinCeiling - 1 },
			state: thread.Error, code: "context_full", says: []string{"leave a successor no room"}, saw: "context_limit_reached after_complete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			m := handsOver(h)
			h.script(filling(c.tokens))
			watching(h, c.hooks...)
			j := job{capabilities: searching}
			if c.change != nil {
				c.change(h, &j)
			}
			rec := h.run(j)
			if rec.Status != c.state || m.started > 0 || len(m.givenUp) > 0 || len(m.requests) != c.made {
				t.Errorf("%s %+v, started %d times, given up %v, %d requests", rec.Status, rec.Outcome, m.started, m.givenUp, len(m.requests))
			}
			if got := h.saw(rec.ThreadID); got != "after_step "+c.saw {
				t.Errorf("fired %s", got)
			}
			p := rec.Outcome.Error
			if p == nil {
				p = &thread.Problem{}
			}
			for _, part := range c.says {
				if !strings.Contains(p.Message, part) {
					t.Errorf("%q is not in %q", part, p.Message)
				}
			}
			if p.Code != c.code {
				t.Errorf("code %q", p.Code)
			}
		})
	}
}

// TestVetoedOnce: a handoff that was called off is not proposed behind every turn.
func TestVetoedOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.script("turns:\n  - {times: 3, tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 185000, output_tokens: 100}}\n  - text: Done.\n")
	watching(h, inHooks("keep", "before_handoff", "", decides("abort", "")))
	rec := h.run(job{capabilities: searching})
	if got := h.saw(rec.ThreadID); rec.Status != thread.Completed || got != "after_step context_limit_reached after_step*3 after_complete" || len(m.requests) > 0 {
		t.Errorf("%s %+v, fired %s", rec.Status, rec.Outcome.Error, got)
	}
	if order, _ := h.fired(rec.ThreadID); len(slices.DeleteFunc(order, func(id string) bool { return id != "keep" })) != 1 {
		t.Error("the veto was asked for more than once")
	}
}

// TestLastHooksOfHandoff: what they start is a child of a thread that runs.
func TestLastHooksOfHandoff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	handsOver(h)
	h.script(filling(nearlyFull))
	h.threads.child = h.child(thread.Outcome{State: thread.Completed, Result: "late"})
	h.hooks(inHooks("starts", "after_complete", "", "primary: execute, item_type: directive, item_id: test/task"))
	rec := h.run(job{capabilities: []string{"rye.execute.*"}})
	_, by := h.fired(rec.ThreadID)
	if rec.Status != thread.Continued || by["starts"].Error != "" || len(h.threads.callers) != 1 || h.threads.callers[0].Hook.Ended {
		t.Errorf("%s, %+v, %d callers", rec.Status, by["starts"], len(h.threads.callers))
	}
}

// TestPartialAnswer: an answer that was cut off is finished before the thread
// hands over, for nobody else could join its parts.
func TestPartialAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.script("turns:\n  - {match: {turn: 1}, text: 'one, ', stop_reason: max_tokens, usage: {input_tokens: 185000, output_tokens: 10}}\n  - text: two\n")
	rec := h.run(job{capabilities: []string{}})
	if rec.Status != thread.Completed || rec.Outcome.Result != "one, two" || len(m.requests) > 0 {
		t.Errorf("%s %+v, %d requests", rec.Status, rec.Outcome, len(m.requests))
	}
}

// TestGivenUp: a successor that was made in vain is given up, however the thread
// came to end otherwise.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*house, thread.ID, *run){
		"panic": func(_ *house, _ thread.ID, r *run) {
			r.Crashpoints = func(s thread.Crashpoint) {
				if s == CrashSuccessor {
					panic("lost")
				}
			}
		},
		"settled by another": func(h *house, id thread.ID, r *run) {
			r.Crashpoints = func(s thread.Crashpoint) {
				if s != CrashSuccessor {
					return
				}
				change, err := store.Finished(id, thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "process_died"}}, nil, time.Now())
				if err == nil {
					_, err = storetest.As(h.store).Apply(context.Background(), change)
				}
				if err != nil {
					h.t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			m := handsOver(h)
			h.script(filling(nearlyFull))
			id := h.register(job{})
			r := newRun(h.deps(id))
			prepare(h, id, r)
			rec, err := r.toEnd(t.Context())
			if err != nil || rec.Status != thread.Error || rec.ContinuationThreadID != "" || m.started > 0 || len(m.givenUp) != 1 {
				t.Errorf("%s %+v, %v, started %d times, given up %v", rec.Status, rec.Outcome, err, m.started, m.givenUp)
			}
		})
	}
}

// TestEndIsNotCarriedThrough: once the transcript says who continues, that one is
// started, whatever becomes of the rest of the end.
func TestEndIsNotCarriedThrough(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.script(filling(nearlyFull))
	id := h.register(job{})
	h.finisher.Crashpoints = func(s thread.Crashpoint) {
		if s == "finish.transcript" {
			if err := h.store.Close(); err != nil {
				h.t.Error(err)
			}
		}
	}
	if _, err := newRun(h.deps(id)).toEnd(t.Context()); err == nil || m.started != 1 || len(m.givenUp) > 0 {
		t.Errorf("%v, started %d times, given up %v", err, m.started, m.givenUp)
	}
}

// TestLastTurnIsNotHandedOver: in its last turn a thread returns what it has.
func TestLastTurnIsNotHandedOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 100, output_tokens: 10}}\n" +
		"  - {error: {status: 400, type: invalid_request_error, message: prompt is too long}}\n")
	watching(h, inHooks("on", "limit", "", decides("continue", "")))
	rec := h.run(job{capabilities: searching, limits: func(l *thread.Limits) { l.Turns = 1 }})
	if p := rec.Outcome.Error; rec.Status != thread.Error || p.Code != "context_full" || len(m.requests) > 0 {
		t.Errorf("%s %+v, %d requests", rec.Status, p, len(m.requests))
	}
	if got := h.saw(rec.ThreadID); got != "after_step context_limit_reached after_complete" {
		t.Errorf("fired %s", got)
	}
}

// TestSmallWindow: what a successor begins with leaves it room to work.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.provider = strings.Replace(plainProvider, "small: {context_window: 200000", "small: {context_window: 8000", 1)
	h.script(filling(7300))
	rec := h.run(job{})
	if rec.Status != thread.Continued || m.requests[0].Ceiling > 4000 || m.requests[0].Ceiling < 3000 {
		t.Errorf("%s %+v, asked for %+v", rec.Status, rec.Outcome.Error, m.requests)
	}
}

// TestTaskHasItsContext: a successor is told what stood around the directive.
func TestTaskHasItsContext(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.script(filling(nearlyFull))
	rec := h.run(job{capabilities: searching, meta: h.heirs})
	if rec.Status != thread.Continued {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome)
	}
	task := m.requests[0].Task
	rules, body, list := strings.Index(task, "Obey ."), strings.Index(task, "Do the task."), strings.Index(task, "Check it.")
	if rules < 0 || rules > body || body > list || strings.Contains(task, "You are fake") {
		t.Errorf("the task is\n%s", task)
	}
}
