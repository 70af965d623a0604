package loop

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// wires are the protocols in which a model can be asked, as settings of the provider.
func wires() map[string]string {
	return map[string]string{
		"Messages": "api: anthropic\nbase_url: ", "Chat Completions": "api: openai\nwire: chat\nbase_url: ", "Responses": "api: openai\nwire: responses\nbase_url: ",
	}
}

// scriptOver has the script answer over a protocol.
func (h *house) scriptOver(settings, script string) {
	h.t.Helper()
	h.script(script)
	url := h.server.BaseURL()
	if !strings.Contains(settings, "anthropic") {
		url += "/v1"
	}
	h.write(".ai/config/agent/providers/fake.yaml", settings+url+h.provider)
}

// TestThoughtsGoBack: what a model has thought goes back to it with each call, over
// every protocol, and to no other model. How much it is to think, and what belongs to
// one cache, is told with each call.
func TestThoughtsGoBack(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, settings := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.scriptOver(settings, `
turns:
  - match: {model: small, turn: 3}
    error: {status: 404, type: t, message: gone}
  - match: {model: small}
    reasoning: "A thought of small's."
    tool_calls: [{name: test_echo, input: {word: a}}]
  - match: {model: second}
    text: done
`)
			id := h.register(job{fallback: "fake/second", effort: "low"})
			if rec := h.end(t.Context(), id); rec.Status != thread.Completed {
				t.Fatalf("%s %+v", rec.Status, rec.Outcome.Error)
			}
			requests := h.server.Requests()
			if got := h.asked(); len(requests) != 4 || requests[3].Model != "second" {
				t.Fatalf("asked %v", got)
			}
			for i, want := range []int{0, 1, 2, 0} {
				body := string(requests[i].Body)
				if got := strings.Count(body, "A thought of small's."); got != want {
					t.Errorf("request %d holds %d thoughts, want %d: %s", i, got, want, body)
				}
				if !strings.Contains(body, `"low"`) {
					t.Errorf("request %d does not say how much to think: %s", i, body)
				}
			}
			checkCacheKey(t, name, requests[0].Body, requests[3].Body)
			for _, out := range events[transcript.CognitionOut](h, id, thread.EventCognitionOut) {
				for _, b := range out.Blocks {
					if (b.Type == llm.ReasoningBlock) != (b.By == "fake/small") {
						t.Errorf("block %+v", b)
					}
				}
			}
		})
	}
}

func checkCacheKey(t *testing.T, name string, first, last []byte) {
	t.Helper()
	var a, b struct {
		Key string `json:"prompt_cache_key"`
	}
	if err := json.Unmarshal(first, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(last, &b); err != nil {
		t.Fatal(err)
	}
	if a != b || (name == "Responses") != strings.HasPrefix(a.Key, "rye-") || len(a.Key) > 64 {
		t.Errorf("cache keys %q and %q", a.Key, b.Key)
	}
}

// TestThoughtsOfThreadBefore: a thread that continues another gives its model back what
// that model has thought, to the byte, and nothing of another's.
func TestThoughtsOfThreadBefore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {text: Done.}\n")
	id := h.register(job{})
	before := handedOn()
	before[1].Blocks = slices.Concat([]llm.Block{
		{Type: llm.ReasoningBlock, Text: "own <1>", Signature: "sig/own+1=", By: "fake/small"},
		{Type: llm.ReasoningBlock, Signature: "redacted_thinking:ownR", By: "fake/small"},
		{Type: llm.ReasoningBlock, Text: "foreign", Signature: "sigF", By: "fake/second"},
		{Type: llm.ReasoningBlock, Text: "of an older version", Signature: "sigO"},
	}, before[1].Blocks, []llm.Block{{Type: llm.ReasoningBlock, Signature: "left hanging", By: "fake/small"}})
	h.continues(id, thread.Continuation{Via: thread.ViaResume, Message: "on"}, before...)
	if rec := h.end(t.Context(), id); rec.Status != thread.Completed {
		t.Fatalf("%+v", rec.Outcome.Error)
	}
	body := string(h.server.Requests()[0].Body)
	for text, want := range map[string]bool{
		`{"signature":"sig/own+1=","thinking":"own \u003c1\u003e","type":"thinking"},{"data":"ownR","type":"redacted_thinking"},{"signature":"sigO"`: true,
		"foreign": false, "sigF": false, "left hanging": false,
	} {
		if strings.Contains(body, text) != want {
			t.Errorf("%s is in the request: %t: %s", text, !want, body)
		}
	}
}

// TestGiven: each message is looked at once, so that it is recognised as sent before.
func TestGiven(t *testing.T) {
	t.Parallel()
	m := model{choice: provider.Choice{Provider: "p", Model: llm.Model{ID: "m"}, Vision: true}}
	talk := []llm.Message{
		llm.Text(llm.User, "hi"),
		{Role: llm.Assistant, Blocks: []llm.Block{
			{Type: llm.ToolUseBlock, ToolCallID: "1", Signature: "s", By: "p/other"}, {Type: llm.ReasoningBlock, Text: "x", By: "p/other"},
			{Type: llm.ToolUseBlock, ToolCallID: "2", Signature: "s", By: "p/m"},
		}},
	}
	first := m.given(talk)
	second := m.given(append(talk, llm.Text(llm.User, "on")))
	if len(second) != 3 || &second[0].Blocks[0] != &talk[0].Blocks[0] || &second[1].Blocks[0] != &first[1].Blocks[0] {
		t.Errorf("messages are made anew: %+v", second)
	}
	if got := second[1].Blocks; len(got) != 2 || got[0].Signature != "" || got[1].Signature != "s" {
		t.Errorf("given %+v", got)
	}
}
