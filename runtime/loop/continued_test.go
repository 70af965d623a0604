package loop

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// handedOn is a conversation as a successor is given it.
func handedOn() []llm.Message {
	call := llm.Block{Type: llm.ToolUseBlock, ToolName: "test_echo", ToolCallID: "c1", Input: json.RawMessage(`{"word":"a"}`)}
	return []llm.Message{
		llm.Text(llm.User, "# What there is"),
		{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.TextBlock, Text: "I call."}, call}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "c1", Text: "a"}}},
	}
}

// going is a continuation directive.
const going = "```xml\n<directive name=\"going\" version=\"1.0.0\">\n<metadata/>\n<inputs><input name=\"how\" default=\"quickly\">x</input></inputs>\n" +
	"</directive>\n```\n\nGo on {input:how} with {input:original_directive} for {input:who}, after {input:previous_thread_id}. " +
	"{input:continuation_message} It was: {input:original_directive_body}\n"

// asWire are the messages of a request, one a line.
func asWire(t *testing.T, body []byte) []string {
	t.Helper()
	var request struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range request.Messages {
		lines = append(lines, m.Role+" "+string(m.Content))
	}
	return lines
}

// TestContinued: a thread that continues another one keeps the conversation that
// it was given, and is told how to go on.
func TestContinued(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {match: {last: Go on}, text: Done., usage: {input_tokens: 100, output_tokens: 10}}\n")
	h.write(".ai/directives/test/going.md", going)
	h.write(".ai/knowledge/k/x.md", "After ${previous_thread_id}: ${previous_summary_id}.\n")
	h.hooks(inHooks("started", "thread_started", "", "primary: fetch, item_id: k/x"),
		inHooks("system", "build_system_prompt", "", "primary: fetch, item_id: who"),
		"  - {id: before, event: thread_continued, action: {primary: fetch, item_id: k/x}}\n",
		"  - {id: behind, event: thread_continued, position: after, wrap: false, action: {primary: fetch, item_id: list}}\n")
	id := h.register(job{inputs: map[string]any{"who": "Ada"}, meta: func(m *thread.Meta) {
		h.heirs(m)
		h.write(".ai/directives/test/task.md", fmt.Sprintf(heir, "task", "test/mid",
			"<context><after>list</after></context><continuation_directive>test/going</continuation_directive>"))
		h.recordChain(m)
	}})
	h.continues(id, thread.Continuation{SummaryID: "test/task/task-1-summary"}, handedOn()...)
	rec := h.end(t.Context(), id)
	if rec.Status != thread.Completed || rec.Outcome.Result != "Done." || rec.Cost.Turns != 1 {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome.Error)
	}
	requests := h.server.Requests()
	if len(requests) != 1 || !strings.Contains(requests[0].System, "You are fake/small at depth 0.") {
		t.Fatalf("%d requests, system prompt %q", len(requests), requests[0].System)
	}
	lines := asWire(t, requests[0].Body)
	want := []string{"user # What there is", "assistant I call.", "user tool_result c1"}
	if len(lines) != 3 && len(lines) != 4 {
		t.Fatalf("%q", lines)
	}
	for i, part := range want {
		for _, word := range strings.Fields(part) {
			if !strings.Contains(lines[i], word) {
				t.Errorf("%q is not in message %d: %s", word, i, lines[i])
			}
		}
	}
	at := -1
	for _, part := range []string{"<x id=\"k/x\" type=\"knowledge\">\nAfter test/task-1: test/task/task-1-summary.", "Go on quickly with test/task for Ada, after test/task-1. Pick up where the previous thread left off. It was: Do the task.", "Check it."} {
		next := strings.Index(requests[0].Last, part)
		if next <= at {
			t.Errorf("%q stands at %d of\n%s", part, next, requests[0].Last)
		}
		at = next
	}
	if strings.Contains(requests[0].Last, "Obey") || strings.Count(requests[0].Last, "Check it.") != 1 {
		t.Errorf("context of the first thread in\n%s", requests[0].Last)
	}
	if order, _ := h.fired(id); !slices.Equal(order, []string{"system", "before", "behind"}) {
		t.Errorf("fired %q", order)
	}
	types := h.eventTypes(id)
	if got := runs(types[:7]); got != "thread_continued cognition_in*3 checkpoint thread_started hook_fired" {
		t.Errorf("events %s", types)
	}
	var injected []string
	for _, e := range events[transcript.ContextInjected](h, id, thread.EventContextInjected) {
		injected = append(injected, e.Position+" "+e.ItemID)
	}
	if got := strings.Join(injected, ", "); got != "system who, system who, before k/x, after list" {
		t.Errorf("context_injected: %s", got)
	}
}

// TestResumed: what a person says stands in place of the continuation directive,
// and the one of the system is what a handoff is followed by.
func TestResumed(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for via, says := range map[thread.Via]string{thread.ViaResume: "The key is there now, {input:who}.", thread.ViaHandoff: "Continue with the task"} {
		h := newHouse(t)
		h.script("turns:\n  - {text: Done.}\n")
		id := h.register(job{})
		c := thread.Continuation{Via: via}
		if via == thread.ViaResume {
			c.Message = says
		}
		h.continues(id, c, handedOn()...)
		rec := h.end(t.Context(), id)
		last := h.server.Requests()[0].Last
		if rec.Status != thread.Completed || !strings.Contains(last, says) || via == thread.ViaResume && last != says {
			t.Errorf("%s: %s %+v, told\n%s", via, rec.Status, rec.Outcome.Error, last)
		}
	}
}

// TestNudgesOfContinued: where first turns are nudged, a thread whose conversation
// has an answer in it may end with text alone; one that was given nothing but a list
// is reminded of its tools.
func TestNudgesOfContinued(t *testing.T) {
	t.Parallel()
	for _, acted := range []bool{true, false} {
		h := newHouse(t)
		h.settings.Nudge = config.NudgeFirstTurn
		h.script("turns:\n  - {text: Done.}\n")
		id := h.register(job{})
		seeded := handedOn()
		if !acted {
			seeded = seeded[:1]
		}
		h.continues(id, thread.Continuation{}, seeded...)
		rec := h.end(t.Context(), id)
		if nudged := rec.Cost.Turns > 1; rec.Status != thread.Completed || nudged == acted {
			t.Errorf("acted %t: %s after %d turns", acted, rec.Status, rec.Cost.Turns)
		}
	}
}

// TestContinuedHandsOver: the successor hands over in its turn, by the handoffs before
// it and its own turns. In records of before those were counted its place says so.
func TestContinuedHandsOver(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, tt := range []struct {
		c    thread.Continuation
		want thread.State
	}{
		{thread.Continuation{Via: thread.ViaHandoff, Position: 20}, thread.Continued},
		{thread.Continuation{Via: thread.ViaHandoff, Position: 21}, thread.Error},
		{thread.Continuation{Via: thread.ViaHandoff, Position: 30, Handoffs: 19}, thread.Continued},
		{thread.Continuation{Via: thread.ViaHandoff, Position: 30, Handoffs: 20}, thread.Error},
		{thread.Continuation{Via: thread.ViaResume, Message: "on", Position: 30}, thread.Continued},
	} {
		c, want := tt.c, tt.want
		h := newHouse(t)
		m := handsOver(h)
		h.script("turns:\n  - {tool_calls: [{name: test_echo, input: {word: a}}], usage: {input_tokens: 185000, output_tokens: 100}}\n")
		id := h.register(job{})
		h.continues(id, c, handedOn()...)
		rec := h.end(t.Context(), id)
		if rec.Status != want || len(m.requests) > 0 != (want == thread.Continued) {
			t.Errorf("%+v: %s %+v, %d requests", c, rec.Status, rec.Outcome.Error, len(m.requests))
		}
	}
}

// TestSeedsAreChecked: a conversation that is not as it was signed is not carried
// on.
func TestSeedsAreChecked(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	change := func(h *house, id thread.ID, from, to string) {
		path := h.folder(id).Transcript()
		raw, err := os.ReadFile(path)
		if err != nil {
			h.t.Fatal(err)
		}
		changed := strings.Replace(string(raw), from, to, 1)
		if changed == string(raw) {
			h.t.Fatalf("%q is not in %s", from, raw)
		}
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(*house, thread.ID)
		says   string
	}{
		"altered": {func(h *house, id thread.ID) { change(h, id, "I call.", "I lied.") }, "does not verify"},
		"unsigned": {func(h *house, id thread.ID) {
			w, err := h.finisher.OpenTranscript(id, "")
			if err != nil {
				h.t.Fatal(err)
			}
			if err := w.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User}); err != nil {
				h.t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				h.t.Fatal(err)
			}
		}, "bytes that nobody signed"},
		"gone": {func(h *house, id thread.ID) {
			if err := os.Truncate(h.folder(id).Transcript(), 0); err != nil {
				h.t.Fatal(err)
			}
		}, "is that of thread"},
		"fewer": {func(h *house, id thread.ID) {
			meta, err := h.folder(id).ReadMeta(h.seal())
			if err != nil {
				h.t.Fatal(err)
			}
			meta.Continuation.Messages++
			if err := h.folder(id).WriteMeta(meta, h.seal()); err != nil {
				h.t.Fatal(err)
			}
		}, "was given 4 messages to continue, and its transcript has 3"},
		"nobody says how": {func(h *house, _ thread.ID) {
			h.write(".ai/directives/rye/agent/continuation.md", "broken")
		}, "rye/agent/continuation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script("turns:\n  - {text: Done.}\n")
			id := h.register(job{})
			h.continues(id, thread.Continuation{}, handedOn()...)
			c.change(h, id)
			rec, err := newRun(h.deps(id)).toEnd(t.Context())
			if err != nil || rec.Status != thread.Error || !strings.Contains(rec.Outcome.Error.Message, c.says) || len(h.server.Requests()) > 0 {
				t.Errorf("%s %+v, %v", rec.Status, rec.Outcome, err)
			}
		})
	}
}

// TestTookOverTooMuch: a conversation that was taken over whole and has no room is handed
// over before the thread has had a turn; one that a handoff has made, or is as short as that,
// is not handed over again.
func TestTookOverTooMuch(t *testing.T) {
	t.Parallel()
	long := handedOn()
	long[2].Blocks[0].Text = strings.Repeat("long words ", 8000) // 22 000 tokens
	for name, tt := range map[string]struct {
		via     thread.Via
		given   []llm.Message
		counted int64
		want    thread.State
		asked   int
	}{
		"refused by the provider": {via: thread.ViaResume, given: long, want: thread.Continued, asked: 1},
		"a copy":                  {via: thread.ViaFork, given: long, want: thread.Continued, asked: 1},
		"known to be full":        {via: thread.ViaRetry, given: long, counted: 199_900, want: thread.Continued},
		"made by a handoff":       {via: thread.ViaHandoff, given: long, want: thread.Error, asked: 1},
		"shortened already":       {via: thread.ViaResume, given: handedOn(), want: thread.Error, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			m := handsOver(h)
			h.script("turns:\n  - {error: {status: 400, type: invalid_request_error, message: 'prompt is too long'}}\n")
			id := h.register(job{})
			h.continuesCounted(id, thread.Continuation{Via: tt.via, Message: "go on"}, tt.counted, tt.given...)
			rec := h.end(t.Context(), id)
			if rec.Status != tt.want || (m.started > 0) != (tt.want == thread.Continued) || len(h.server.Requests()) != tt.asked {
				t.Errorf("%s %+v, started %d times, %d calls of the model", rec.Status, rec.Outcome.Error, m.started, len(h.server.Requests()))
			}
		})
	}
}

// TestCountIsTakenOver: the count of the conversation before bounds the answer, until the
// provider counts anew; another model counts other tokens.
func TestCountIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		most  int // tokens of the first answer
	}{{"fake/small", 2000}, {"fake/second", 4000}} {
		h := newHouse(t)
		h.script("turns:\n  - {text: Done., usage: {input_tokens: 300, output_tokens: 10}}\n")
		id := h.register(job{model: tt.model})
		h.continuesCounted(id, thread.Continuation{Via: thread.ViaResume, Message: "go on"}, 198_000, handedOn()...)
		rec := h.end(t.Context(), id)
		var request struct {
			MaxTokens int `json:"max_tokens"`
		}
		if err := json.Unmarshal(h.server.Requests()[0].Body, &request); err != nil {
			t.Fatal(err)
		}
		if rec.Status != thread.Completed || request.MaxTokens > tt.most || request.MaxTokens < tt.most-100 {
			t.Errorf("%s: %s %+v, answer of at most %d", tt.model, rec.Status, rec.Outcome.Error, request.MaxTokens)
		}
	}
}

// TestCountBoundsMoney: what was counted of the conversation before bounds what a call may
// cost too, instead of its bytes; without a count the thread ends before it pays anything,
// and says what the call could have cost.
func TestCountBoundsMoney(t *testing.T) {
	t.Parallel()
	long := handedOn()
	long[2].Blocks[0].Text = strings.Repeat("long words ", 8000) // 88 000 bytes, at most 110 000 micro-dollars
	for counted, code := range map[int64]string{22_000: "", 0: "spend_exceeded", 87_000: "spend_exceeded"} {
		h := newHouse(t)
		h.script(doneScript)
		id := h.register(job{capabilities: []string{}, limits: func(l *thread.Limits) { l.Spend = 60_000 }})
		h.continuesCounted(id, thread.Continuation{Via: thread.ViaResume, Message: "go on"}, counted, long...)
		rec := h.end(t.Context(), id)
		if code == "" {
			if rec.Status != thread.Completed || rec.Cost.Spend > 60_000 {
				t.Errorf("%d counted: %s %+v", counted, rec.Status, rec.Outcome.Error)
			}
			continue
		}
		if rec.Status != thread.Error || rec.Outcome.Error.Code != code || len(h.server.Requests()) > 0 ||
			!strings.Contains(rec.Outcome.Error.Message, "$0.0600): the next call was not made, as it could cost up to $0.1") {
			t.Errorf("%d counted: %s %+v", counted, rec.Status, rec.Outcome.Error)
		}
	}
}
