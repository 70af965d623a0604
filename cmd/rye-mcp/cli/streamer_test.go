package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

func eventOf(t *testing.T, kind thread.EventType, payload any) thread.Event {
	t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return thread.Event{Type: kind, Payload: raw}
}

// A person sees what a call is about and why it failed, in a line each, and no JSON.
func TestStreamerTellsCalls(t *testing.T) {
	t.Parallel()
	call := func(tool, input string) thread.Event {
		return eventOf(t, thread.EventToolCallStart, transcript.ToolCallStart{Tool: tool, Input: transcript.Input(input)})
	}
	result := func(text string, failed bool) thread.Event {
		return eventOf(t, thread.EventToolCallResult, transcript.ToolCallResult{Tool: "rye/bash", Text: text, IsError: failed})
	}
	answer := transcript.Blocks{{Type: llm.TextBlock, Text: "Both are done.\nReally."}}
	events := []thread.Event{
		eventOf(t, thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "\n\nDo it.\nNow."}}}),
		eventOf(t, thread.EventTokenDelta, transcript.TokenDelta{Type: llm.TextBlock, Text: "Both are"}),
		call("rye/file-system/read", `{"limit":3,"path":"main.go"}`),
		call("rye/bash", `{"command":"go test \u001b[31m ./..."}`),
		call("rye/odd", `["x"]`),
		result(`{"data":"all is well"}`, false),
		result(`{"success":false,"error":"exit status 1"}`, true),
		result("no JSON\nat all", true),
		eventOf(t, thread.EventCognitionOut, transcript.CognitionOut{Blocks: answer}),
		eventOf(t, thread.EventThreadError, transcript.Ended{
			Outcome: thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x", Message: "it broke"}}, Cost: thread.Cost{Turns: 2},
		}),
	}
	calls := "→ rye/file-system/read main.go\n→ rye/bash go test  [31m ./...\n→ rye/odd\n✗ rye/bash: exit status 1\n✗ rye/bash: no JSON\n"
	for want, s := range map[string]streamer{
		"Both are\n" + calls: {},
		"« Do it.\n" + calls + "Both are done.\nReally.\nerror after 2 turns, $0.0000: it broke\n": {whole: true},
	} {
		var out strings.Builder
		s.out, s.err = &out, &out
		for _, e := range events {
			if err := s.see(e); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != want {
			t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want []string
	}{
		{"one two three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one /a/long/path/that/is/whole x", 8, []string{"one", "/a/long/path/that/is/whole", "x"}},
		{"日本 語", 5, []string{"日本", "語"}},
		{"", 5, []string{""}},
	} {
		if got := wrap(c.text, c.most); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}
