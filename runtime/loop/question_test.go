package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// The ways to a limit: what the model answers, and the limits. Each is hit once,
// and behind it is the answer "done".
var toLimits = map[string]struct {
	script string
	limits func(*thread.Limits)
	raise  map[string]float64 // enough for the rest
	finish bool               // there is room for a last turn
}{
	"turns_exceeded": {
		script: "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 100, output_tokens: 10}}\n  - text: done\n",
		limits: func(l *thread.Limits) { l.Turns = 1 }, raise: map[string]float64{"turns": 2}, finish: true,
	},
	"tokens_exceeded": {
		script: "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 5000, output_tokens: 1000}}\n  - text: done\n",
		limits: func(l *thread.Limits) { l.Tokens = 4000 }, raise: map[string]float64{"tokens": 50_000, "turns": 12}, finish: true,
	},
	"spend_exceeded": {
		script: "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 3000, output_tokens: 10}}\n  - text: done\n",
		limits: func(l *thread.Limits) { l.Spend = 5000 }, raise: map[string]float64{"spend": 0.5},
	},
	"duration_exceeded": {
		script: "turns:\n  - {times: 1, text: half an answer, hang: true, cut_after: 3, usage: {input_tokens: 100, output_tokens: 10}}\n  - text: done\n",
		limits: func(l *thread.Limits) { l.DurationSeconds = 0.3 }, raise: map[string]float64{"duration_seconds": 600}, finish: true,
	},
	"duration_exceeded in a tool": {
		script: "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_wait, input: {word: a}}, {name: test_wait, input: {word: b}}]}\n  - text: done\n",
		limits: func(l *thread.Limits) { l.DurationSeconds = 0.5 }, raise: map[string]float64{"duration_seconds": 600}, finish: true,
	},
}

// asking is a house whose threads ask, and wait for an answer.
func asking(t *testing.T) *house {
	h := newHouse(t)
	h.settings.ToolConcurrency = 1 // the second call of a turn waits for its turn
	h.settings.OnLimit = config.OnLimit{Action: item.OnLimitAsk, DeadlineSeconds: 600, Default: config.OnLimitDefaultStop}
	return h
}

// asked waits until a thread asks.
func (h *house) askedBy(ctx context.Context, id thread.ID) thread.Question {
	changes := h.store.Changes(ctx)
	for {
		open, err := h.store.Questions(ctx, store.QuestionFilter{ThreadID: id, Open: true})
		if ctx.Err() != nil {
			return thread.Question{} // the thread has ended meanwhile
		}
		if err != nil {
			h.t.Error(err)
			return thread.Question{}
		}
		if len(open) > 0 {
			return open[0]
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return thread.Question{}
		}
	}
}

// answering runs a thread and answers what it asks, in order.
func (h *house) answering(id thread.ID, answers ...thread.Answer) (thread.Record, []thread.Question) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	answered := make(chan []thread.Question, 1)
	go func() {
		var asked []thread.Question
		defer func() { answered <- asked }()
		for _, a := range answers {
			q := h.askedBy(ctx, id)
			if q.ID == "" {
				return
			}
			asked = append(asked, q)
			a.By, a.At = "Ada", time.Now()
			if _, err := h.store.Answer(ctx, q.ID, a); err != nil {
				h.t.Error(err)
			}
		}
	}()
	rec := h.end(h.t.Context(), id)
	cancel()
	return rec, <-answered
}

// TestAskAboutLimit: whatever limit is hit, the thread asks, and does as it is
// told.
func TestAskAboutLimit(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, to := range toLimits {
		code, _, _ := strings.Cut(name, " ")
		decisions := []thread.Decision{thread.Raise, thread.Stop}
		if to.finish { // there is money for another call
			decisions = append(decisions, thread.Finish)
		}
		for _, decision := range decisions {
			t.Run(name+"/"+string(decision), func(t *testing.T) {
				t.Parallel()
				h := asking(t)
				h.script(to.script)
				answer := thread.Answer{Decision: decision}
				if decision == thread.Raise {
					answer.Limits = to.raise
				}
				id := h.register(job{limits: to.limits})
				rec, asked := h.answering(id, answer)
				if len(asked) != 1 || asked[0].Code != code || slices.Contains(asked[0].Options, thread.Finish) != to.finish {
					t.Fatalf("asked %+v", asked)
				}
				wantTold(t, h, rec, code, decision)
			})
		}
	}
}

// wantTold: a thread that was told what to do about a limit did it, and it is on
// record.
func wantTold(t *testing.T, h *house, rec thread.Record, code string, decision thread.Decision) {
	t.Helper()
	if decision == thread.Stop {
		if rec.Status != thread.Error || rec.Outcome.Error.Code != code {
			t.Errorf("%s %+v", rec.Status, rec.Outcome)
		}
	} else if rec.Status != thread.Completed || rec.Outcome.Result != "done" {
		t.Errorf("%s %+v", rec.Status, rec.Outcome)
	}
	early := rec.Outcome != nil && strings.Contains(strings.Join(rec.Outcome.Warnings, " "), "finished early. Limit exceeded: "+code)
	if early != (decision == thread.Finish) {
		t.Errorf("warnings %q", rec.Outcome.Warnings)
	}
	id := rec.ThreadID
	over := events[transcript.LimitExceeded](h, id, thread.EventLimitExceeded)
	asked := events[transcript.QuestionAsked](h, id, thread.EventQuestionAsked)
	told := events[transcript.QuestionAnswered](h, id, thread.EventQuestionAnswered)
	if len(over) != 1 || over[0].Code != code || len(asked) != 1 || len(told) != 1 || told[0].Decision != decision || told[0].By != "Ada" {
		t.Errorf("on record: %+v, %+v, %+v", over, asked, told)
	}
	meta, err := h.folder(id).ReadMeta(h.seal())
	if err != nil {
		t.Fatal(err)
	}
	budget, err := h.store.Budget(t.Context(), id)
	if err != nil || budget.MaxSpend != meta.Limits.Spend {
		t.Errorf("budget %+v (%v), limits %+v", budget, err, meta.Limits)
	}
}

// TestLastTurn: in its last turn a model can return and nothing else.
func TestLastTurn(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const outputs = `<output name="word" type="string" required="true">one</output>`
	const first = "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}]}\n"
	for name, c := range map[string]struct {
		script, outputs string
		state           thread.State
		result          string
		may             string // be called
	}{
		"text":             {first + "  - text: what I have\n", "", thread.Completed, "what I have", ""},
		"cut off":          {first + "  - {text: what I, stop_reason: max_tokens}\n", "", thread.Completed, "what I", ""},
		"returns":          {first + "  - tool_calls: [{name: rye_directive_return, input: {word: b}}]\n", outputs, thread.Completed, `{"word":"b"}`, ""},
		"says it cannot":   {first + "  - tool_calls: [{name: rye_directive_return, input: {status: error, error_detail: no}}]\n", outputs, thread.Error, "", ""},
		"returns too few":  {first + "  - tool_calls: [{name: rye_directive_return, input: {}}]\n", outputs, thread.Error, "", ""},
		"calls a tool":     {first + "  - tool_calls: [{name: test_echo, input: {word: b}}]\n", "", thread.Error, "", ""},
		"says nothing":     {first + "  - {text: ''}\n", "", thread.Error, "", ""},
		"calls and forget": {first + "  - tool_calls: [{name: test_echo, input: {word: b}}]\n", outputs, thread.Error, "", "rye_directive_return"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			h.script(c.script)
			id := h.register(job{outputs: c.outputs, limits: func(l *thread.Limits) { l.Turns = 1 }})
			rec, _ := h.answering(id, thread.Answer{Decision: thread.Finish})
			if rec.Status != c.state || rec.Outcome.Result != c.result || rec.Cost.Turns != 2 {
				t.Errorf("%s %+v %+v after %d turns", rec.Status, rec.Outcome, rec.Outcome.Error, rec.Cost.Turns)
			}
			requests := h.server.Requests() // whose beginning the provider has in its cache
			if first, last := requests[0].Tools, requests[1].Tools; !slices.Equal(first, last) {
				t.Errorf("offered %v, and %v before", last, first)
			}
			if !contains(h.asked(), "This is your last turn") {
				t.Errorf("asked %q", h.asked())
			}
			if n := len(h.results(id)); n > 2 || n == 2 && h.results(id)[1].Tool != "rye_directive_return" && !h.results(id)[1].IsError {
				t.Errorf("results %+v", h.results(id))
			}
			for _, result := range h.results(id)[1:] {
				if result.Tool == "test_echo" && !strings.Contains(result.Text, "test_echo cannot be called in the last turn; to be called there are: "+cmp.Or(c.may, "none")) {
					t.Errorf("refused by %s", result.Text)
				}
			}
		})
	}
}

// TestNobodyAnswers: when the deadline passes the default holds, where it can.
func TestNobodyAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		limit, standard string
		want            thread.Decision
	}{
		"stop":                     {"turns_exceeded", config.OnLimitDefaultStop, thread.Stop},
		"finish":                   {"turns_exceeded", config.OnLimitDefaultFinish, thread.Finish},
		"finish without the money": {"spend_exceeded", config.OnLimitDefaultFinish, thread.Stop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			h.settings.OnLimit.DeadlineSeconds, h.settings.OnLimit.Default = 1e-6, c.standard
			to := toLimits[c.limit]
			h.script(to.script)
			rec := h.run(job{limits: to.limits})
			if (rec.Status == thread.Completed) != (c.want == thread.Finish) {
				t.Errorf("%s %+v", rec.Status, rec.Outcome)
			}
			told := events[transcript.QuestionAnswered](h, rec.ThreadID, thread.EventQuestionAnswered)
			if len(told) != 1 || told[0].Decision != c.want || !strings.HasPrefix(told[0].By, "nobody") {
				t.Errorf("on record: %+v", told)
			}
		})
	}
}

// TestStoppedWhileItWaits: a thread that waits for an answer can be stopped like
// any other, and its question is closed.
func TestStoppedWhileItWaits(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		stop func(h *house, id thread.ID, cancel context.CancelCauseFunc) error
		code string
	}{
		"by a signal": {func(_ *house, _ thread.ID, cancel context.CancelCauseFunc) error {
			cancel(&thread.SignalError{Signal: "SIGTERM"})
			return nil
		}, "cancelled"},
		"by a cancel on record": {func(h *house, id thread.ID, _ context.CancelCauseFunc) error {
			_, err := h.store.RequestCancel(context.Background(), id, "", time.Now())
			return err
		}, "cancelled"},
		"by its folder going": {func(h *house, id thread.ID, _ context.CancelCauseFunc) error {
			return os.Rename(h.folder(id).Transcript(), h.folder(id).Transcript()+".gone")
		}, "transcript_lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			to := toLimits["turns_exceeded"]
			h.script(to.script)
			id := h.register(job{limits: to.limits})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			asked := make(chan thread.Question, 1)
			go func() {
				q := h.askedBy(t.Context(), id)
				if err := c.stop(h, id, cancel); err != nil {
					t.Error(err)
				}
				asked <- q
			}()
			r := newRun(h.deps(id))
			r.lookEvery = time.Millisecond
			_, err := r.toEnd(ctx)
			q, questionErr := h.store.Question(t.Context(), (<-asked).ID)
			if questionErr != nil || q.Answer == nil || q.Answer.By != byEnd {
				t.Errorf("question %+v, %v", q, questionErr)
			}
			rec, getErr := h.store.Get(t.Context(), id)
			if err != nil || getErr != nil || rec.Outcome.Error.Code != c.code {
				t.Errorf("%s %+v, %v", rec.Status, rec.Outcome, errors.Join(err, getErr))
			}
		})
	}
}

// TestDirectiveSaysWhetherToAsk: what the directive says wins over the settings.
func TestDirectiveSaysWhetherToAsk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for i, c := range []struct {
		settings, directive string
		asks                bool
	}{
		{item.OnLimitStop, "", false}, {item.OnLimitStop, item.OnLimitAsk, true},
		{item.OnLimitAsk, "", true}, {item.OnLimitAsk, item.OnLimitStop, false},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			h := asking(t)
			h.settings.OnLimit.Action, h.settings.OnLimit.DeadlineSeconds = c.settings, 1e-6
			to := toLimits["turns_exceeded"]
			h.script(to.script)
			rec := h.run(job{limits: to.limits, onLimit: c.directive})
			if asked := events[transcript.QuestionAsked](h, rec.ThreadID, thread.EventQuestionAsked); (len(asked) > 0) != c.asks {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

// TestRaiseIsCheckedAgain: an answer in the store that cannot be carried out, as
// whoever wrote it passed by the checks or was overtaken by a sibling, raises
// nothing. The thread asks again and says why.
func TestRaiseIsCheckedAgain(t *testing.T) {
	t.Parallel()
	h := asking(t)
	to := toLimits["turns_exceeded"]
	h.script(to.script)
	parent := h.register(job{})
	if _, err := storetest.As(h.store).Apply(t.Context(), store.Claimed(parent, thread.Process{PID: os.Getpid(), Host: "here"}, time.Now())); err != nil {
		t.Fatal(err)
	}
	id := h.register(job{unbudgeted: true, limits: to.limits, meta: func(m *thread.Meta) {
		m.ParentID, m.Limits.Spend = parent, 100_000
	}})
	if err := h.store.Reserve(t.Context(), id, parent, 100_000, time.Now()); err != nil {
		t.Fatal(err)
	}
	raise := func(limits map[string]float64) thread.Answer {
		return thread.Answer{Decision: thread.Raise, Limits: limits}
	}
	rec, asked := h.answering(id,
		raise(map[string]float64{"turns": 11}),            // the parent has 10
		raise(map[string]float64{"turns": 5, "spend": 2}), // the parent has a dollar
		raise(map[string]float64{"turns": 1}),             // no more than was used
		raise(map[string]float64{"turns": 5, "spend": 0.2}))
	if rec.Status != thread.Completed || len(asked) != 4 {
		t.Fatalf("%s %+v after %d questions", rec.Status, rec.Outcome, len(asked))
	}
	for _, q := range asked[1:] {
		if !strings.HasPrefix(q.Text, "That could not be done: ") {
			t.Errorf("asked %q", q.Text)
		}
	}
	if most := asked[0].Most; most == nil || most.Turns != 10 || most.Spend != 1_000_000 {
		t.Errorf("the most is %+v", most)
	}
	meta, err := h.folder(id).ReadMeta(h.seal())
	if err != nil || meta.Limits.Turns != 5 || meta.Limits.Spend != 200_000 {
		t.Errorf("limits %+v, %v", meta.Limits, err)
	}
	if budget, err := h.store.Budget(t.Context(), id); err != nil || budget.MaxSpend != 200_000 {
		t.Errorf("budget %+v, %v", budget, err)
	}
}

// TestClockStandsStill: the time that a thread waits for an answer is not its
// own.
func TestClockStandsStill(t *testing.T) {
	t.Parallel()
	w := stopwatch{since: time.Now().Add(-time.Hour)}
	w.stop()
	if at := w.elapsed(); at < time.Hour || at > 2*time.Hour || w.elapsed() != at {
		t.Errorf("it stands still at %s and %s", at, w.elapsed())
	}
	w.start()
	if at := w.elapsed(); at < time.Hour || at > 2*time.Hour {
		t.Errorf("it goes on from %s", at)
	}

	h := asking(t)
	h.settings.OnLimit.DeadlineSeconds, h.settings.OnLimit.Default = 1e-6, config.OnLimitDefaultFinish
	to := toLimits["turns_exceeded"]
	h.script(to.script)
	r := newRun(h.deps(h.register(job{limits: to.limits})))
	var stood, goesOn bool
	r.Crashpoints = func(s thread.Crashpoint) {
		switch s {
		case CrashAsked:
			stood = r.clock.since.IsZero()
		case CrashAsk:
			goesOn = !r.clock.since.IsZero()
		}
	}
	if _, err := r.toEnd(t.Context()); err != nil || !stood || !goesOn {
		t.Errorf("stood still: %t, goes on: %t, %v", stood, goesOn, err)
	}
}

// chained is a thread that has the rest of a chain's limits: three turns and a cent were
// used before.
func (h *house) chained(limits func(*thread.Limits)) thread.ID {
	h.t.Helper()
	var whole thread.Limits
	id := h.register(job{limits: limits, meta: func(m *thread.Meta) { whole = m.Limits }})
	whole.Turns += 3
	whole.Spend += 10_000
	h.continues(id, thread.Continuation{Whole: &whole}, handedOn()...)
	return id
}

// TestLimitOfAChain: what has reached a limit is told by what the person has set, and not by
// what was left of it. A raise holds for both.
func TestLimitOfAChain(t *testing.T) {
	t.Parallel()
	const script = "turns:\n  - {times: 1, tool_calls: [{name: test_echo, input: {word: a}}]}\n  - text: done\n"
	to := toLimits["turns_exceeded"]
	h := newHouse(t)
	h.script(script)
	rec := h.end(t.Context(), h.chained(to.limits))
	const want = "Limit exceeded: turns_exceeded (4/4); the threads that this one continues have used 3 of it"
	if p := rec.Outcome.Error; p == nil || p.Code != "turns_exceeded" || p.Message != want {
		t.Errorf("%+v, want %s", p, want)
	}
	got := events[transcript.LimitExceeded](h, rec.ThreadID, thread.EventLimitExceeded)
	if len(got) != 1 || got[0].Max != "1" || got[0].Chain == nil || *got[0].Chain != (thread.ChainUse{Value: "4", Max: "4", Before: "3"}) {
		t.Errorf("events %+v", got)
	}

	h = newHouse(t)
	h.script(script)
	rec = h.end(t.Context(), h.chained(func(l *thread.Limits) { l.Spend = 100 }))
	const unpaid = "/$0.0101); the threads that this one continues have used $0.0100 of it: the next call was not made, as it could cost up to $"
	if p := rec.Outcome.Error; p == nil || p.Code != "spend_exceeded" || !strings.Contains(p.Message, unpaid) {
		t.Errorf("%+v, want %s", p, unpaid)
	}

	h = asking(t)
	h.script(script)
	rec, asked := h.answering(h.chained(to.limits), thread.Answer{Decision: thread.Raise, Limits: map[string]float64{"turns": 5, "spend": 2}})
	if rec.Status != thread.Completed || len(asked) != 1 || !strings.Contains(asked[0].Text, "its limit of turns: 1 of 1 (with the threads that it continues: 4 of 4).") {
		t.Fatalf("%s %+v, asked %+v", rec.Status, rec.Outcome.Error, asked)
	}
	meta, err := h.folder(rec.ThreadID).ReadMeta(h.seal())
	if err != nil || meta.Limits.Turns != 5 || meta.Continuation.Whole.Turns != 8 || meta.Continuation.Whole.Spend != 2_010_000 {
		t.Errorf("limits %+v, of the chain %+v, %v", meta.Limits, meta.Continuation.Whole, err)
	}
}
