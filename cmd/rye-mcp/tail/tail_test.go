package tail

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

func event(kind thread.EventType, payload any) thread.Event {
	raw, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	return thread.Event{Type: kind, ThreadID: "review-1", Payload: raw}
}

// shown is what somebody reads of events that come one after another.
func shown(r *Reader, events ...thread.Event) string {
	var b strings.Builder
	open := false
	for _, e := range events {
		for _, p := range r.Read(e) {
			if p.Kind != Words && open {
				b.WriteString("\n")
			}
			b.WriteString(p.Text)
			if open = p.Open; p.Kind != Words {
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}

// A person sees what each call is about, what it gave or why it failed, and what each
// turn cost, in a line each and no JSON.
func TestTurn(t *testing.T) {
	t.Parallel()
	call := func(id, tool, input string) thread.Event {
		return event(thread.EventToolCallStart, transcript.ToolCallStart{CallID: id, Tool: tool, Input: transcript.Input(input)})
	}
	result := func(id, tool, text string, failed bool) thread.Event {
		return event(thread.EventToolCallResult, transcript.ToolCallResult{CallID: id, Tool: tool, Text: text, IsError: failed, DurationMS: 1234})
	}
	began := event(thread.EventThreadStarted, transcript.ThreadStarted{
		Directive: "review", Model: "scripted/general", Limits: thread.Limits{Turns: 8, Spend: 250_000}, Warnings: []string{"risky"},
	})
	began.Seq = 1
	got := shown(&Reader{},
		began,
		event(thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "\n\n<x>\nDo it.\nNow."}}}),
		event(thread.EventTokenDelta, transcript.TokenDelta{Type: llm.ReasoningBlock, Text: "hm"}),
		event(thread.EventTokenDelta, transcript.TokenDelta{Type: llm.ReasoningBlock, Text: "hm"}),
		event(thread.EventTokenDelta, transcript.TokenDelta{Type: llm.TextBlock, Text: "I lo"}),
		event(thread.EventTokenDelta, transcript.TokenDelta{Type: llm.TextBlock, Text: "ok."}),
		event(thread.EventCognitionOut, transcript.CognitionOut{
			Turn: 1, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "I look."}}, Usage: llm.Usage{InputTokens: 900, CacheReadTokens: 11_400, OutputTokens: 80}, Spend: 2_580,
		}),
		call("1", "rye_file_system_read", `{"limit":3,"path":"main.go"}`),
		call("2", "rye_execute", `{"item_type":"tool","item_id":"rye/bash","parameters":{"command":"go test \u001b[31m ./..."}}`),
		call("3", "rye/odd", `["x"]`),
		result("1", "rye_file_system_read", `{"success":true,"data":{"content":"package main\nfunc main() {}"}}`, false),
		result("2", "rye_execute", `{"success":false,"error":"exit status 1"}`, true),
		result("3", "rye/odd", "no JSON\nat all", true),
		event(thread.EventCognitionOut, transcript.CognitionOut{
			Turn: 2, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "It was not streamed.\nReally."}}, Usage: llm.Usage{OutputTokens: 1_200_000}, Spend: 20_000,
		}),
		event(thread.EventThreadCompleted, transcript.Ended{
			Outcome: thread.Outcome{State: thread.Completed, Outputs: map[string]any{"total": 3}}, Cost: thread.Cost{Turns: 2, Spend: 22_580},
		}),
	)
	want := `● review, model scripted/general, at most $0.2500 and 8 turns
Warning: risky
« Do it. (3 lines)
· thinks
I look.
· turn 1: 12.3k tokens in, 80 out, $0.0026
→ rye_file_system_read main.go
→ rye_execute rye/bash go test ␛[31m ./...
→ rye/odd
← rye_file_system_read 66 B in 1.2 s: package main
✗ rye_execute rye/bash go test ␛[31m ./...: exit status 1
✗ rye/odd: no JSON
It was not streamed.
Really.
· turn 2: 0 tokens in, 1.2M out, $0.0200; $0.0226 so far
completed after 2 turns, $0.0226
outputs {"total":3}
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAsides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    thread.EventType
		payload any
		want    string
	}{
		{thread.EventMessage, transcript.Message{
			Kind: thread.Steer, From: thread.Sender{Kind: thread.ByPerson}, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "Leave it."}},
		}, "« steer from the person: Leave it.\n"},
		{thread.EventQuestionAsked, transcript.QuestionAsked{
			Text: "May it go on?\nIt wants more.", Options: []thread.Decision{thread.Raise, thread.Stop}, Default: thread.Stop, DeadlineAt: "2026-11-22T22:00:00Z",
		}, "? May it go on? (2 lines)\n? answers: raise, stop; else stop at 2026-11-22T22:00:00Z\n? to answer: rye-mcp threads approve review-1\n"},
		{thread.EventQuestionAnswered, transcript.QuestionAnswered{
			Decision: thread.Raise, Limits: map[string]float64{"turns": 30, "spend": 0.5}, By: "a person", WaitedMS: 3100,
		}, "✓ raise spend=0.5 turns=30, by a person after 3.1 s\n"},
		{thread.EventErrorClassified, transcript.ErrorClassified{Category: "rate_limited", Message: "slow down\nplease"}, "✗ model: rate_limited: slow down\n"},
		{thread.EventRetry, transcript.Retry{Reason: "busy", DelayMS: 1500}, "… busy, trying again in 1.5 s\n"},
		{thread.EventHookFired, transcript.HookFired{HookID: "h", Event: "thread_started", Error: "no"}, "✗ hook h at thread_started: no\n"},
		{thread.EventHookFired, transcript.HookFired{HookID: "h", Event: "thread_started", Result: "done"}, "· hook h at thread_started: done\n"},
		{thread.EventChildThreadStarted, transcript.ChildStarted{ThreadID: "a-1"}, "↳ thread a-1\n"},
		{thread.EventThreadContinued, transcript.ThreadContinued{PreviousThreadID: "a-1", Via: thread.ViaFork, Messages: 1}, "● a copy of thread a-1 (1 message)\n"},
		{thread.EventThreadContinued, transcript.ThreadContinued{PreviousThreadID: "a-1", Via: "handoff", Messages: 2}, "● continues thread a-1 (handoff; 2 messages taken over)\n"},
		{thread.EventThreadResumed, transcript.ThreadResumed{NewThreadID: "c-1"}, "⇒ continued by thread c-1\n"},
		{thread.EventCognitionIn, transcript.CognitionIn{Blocks: transcript.Blocks{{Type: llm.ToolResultBlock, IsError: true, ToolName: "t", Text: "bad"}}}, ""},
		{thread.EventThreadError, transcript.Ended{Outcome: thread.Outcome{State: thread.Error, Error: &thread.Problem{Message: "it broke"}}}, "error after 0 turns, $0.0000: it broke\n"},
		{thread.EventLimitExceeded, transcript.LimitExceeded{Code: "turns_exceeded", Value: "8", Max: "8"}, "· " + (&thread.LimitError{Code: "turns_exceeded", Value: "8", Max: "8"}).Error() + "\n"},
		{thread.EventToolCallResult, transcript.ToolCallResult{Tool: "t", Text: `{"success":true}`}, "← t 16 B\n"},
		{thread.EventToolCallResult, transcript.ToolCallResult{Tool: "t", Text: `{"success":true,"n":[1, 2]}`}, "← t 27 B: {\"success\":true,\"n\":[1,2]}\n"},
		{thread.EventToolCallResult, transcript.ToolCallResult{Tool: "t", Text: strings.Repeat("x", 1<<20)}, "← t 1.0 MiB: " + strings.Repeat("x", 99) + "…\n"},
		{thread.EventCheckpoint, transcript.Checkpoint{Turn: 1}, ""},
		{"of_a_later_version", struct{}{}, ""},
		{thread.EventToolCallStart, "no object", ""},
	} {
		if got := shown(&Reader{}, event(c.kind, c.payload)); got != c.want {
			t.Errorf("%s: %q, want %q", c.kind, got, c.want)
		}
	}
}

// An attempt that failed half-way is told again from its beginning, and a thread that
// is not seen from its beginning has no sum.
func TestAgain(t *testing.T) {
	t.Parallel()
	r := &Reader{}
	shown(r, event(thread.EventTokenDelta, transcript.TokenDelta{Type: llm.TextBlock, Text: "half"}), event(thread.EventRetry, transcript.Retry{Reason: "x"}))
	got := shown(r, event(thread.EventCognitionOut, transcript.CognitionOut{Turn: 3, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "whole"}}, Spend: 10_000}))
	if want := "whole\n· turn 3: 0 tokens in, 0 out, $0.0100\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAttackWordsToTerminal: a model, a tool or a file says what moves the cursor, opens a link or turns the direction of text. It is shown as signs and does nothing.
func TestAttackWordsToTerminal(t *testing.T) {
	t.Parallel()
	kinds := []thread.EventType{
		thread.EventThreadStarted, thread.EventCognitionIn, thread.EventMessage, thread.EventTokenDelta, thread.EventCognitionOut, thread.EventToolCallStart,
		thread.EventToolCallResult, thread.EventQuestionAsked, thread.EventQuestionAnswered, thread.EventErrorClassified, thread.EventRetry, thread.EventLimitExceeded,
		thread.EventHookFired, thread.EventChildThreadStarted, thread.EventThreadContinued, thread.EventThreadResumed, thread.EventThreadHandoff,
		thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled,
	}
	rapid.Check(t, func(t *rapid.T) {
		evil := rapid.SampledFrom([]string{"\x1b[2J", "\x1b]8;;http://x\x07", "\u202e", "\u009b31m", "\r", "\b", "\x00"}).Draw(t, "evil") + rapid.String().Draw(t, "text")
		said, err := json.Marshal(evil)
		if err != nil {
			t.Fatal(err)
		}
		fields := "{"
		for _, name := range []string{
			"directive", "model", "text", "tool", "call_id", "category", "message", "reason", "limit_code", "current_value", "hook_id", "event", "result", "error",
			"thread_id", "new_thread_id", "previous_thread_id", "via", "kind", "default", "deadline_at", "decision", "by",
		} {
			fields += fmt.Sprintf("%q:%s,", name, said)
		}
		payload := fields + fmt.Sprintf(`"options":[%[1]s],"warnings":[%[1]s],"input":{"path":%[1]s},"is_error":%[2]v,"from":{"name":%[1]s},"turn":1,
			"blocks":[{"type":"text","text":%[1]s},{"type":"tool_result","is_error":true,"tool_name":%[1]s,"text":%[1]s}]}`, said, rapid.Bool().Draw(t, "failed"))
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		if kind == thread.EventTokenDelta {
			payload = `{"type":"text","text":` + string(said) + `}`
		}
		if terminal := kind == thread.EventThreadHandoff || kind == thread.EventThreadCompleted || kind == thread.EventThreadError || kind == thread.EventThreadCancelled; terminal {
			payload = fmt.Sprintf(`{"new_thread_id":%[1]s,"outcome":{"status":%[1]s,"error":{"message":%[1]s},"warnings":[%[1]s],"outputs":{%[1]s:%[1]s}}}`, said)
		}
		pieces := (&Reader{}).Read(thread.Event{Type: kind, ThreadID: thread.ID(evil), Payload: []byte(payload)})
		if len(pieces) == 0 {
			t.Fatalf("%s tells nothing of %s", kind, payload)
		}
		for _, p := range pieces {
			for _, r := range p.Text {
				if !unicode.IsPrint(r) && (p.Kind != Words || r != '\n' && r != '\t') {
					t.Fatalf("%s shows %U in %q", kind, r, p.Text)
				}
			}
		}
	})
}
