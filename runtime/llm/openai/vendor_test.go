package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// transport answers every request with the same events, and keeps its body.
type transport struct{ events, sent string }

func (s *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	s.sent = string(body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(s.events)),
	}, err
}

// TestVendors: each vendor is sent what it alone asks for, and what another vendor's model
// has said in a form that it takes.
func TestVendors(t *testing.T) {
	t.Parallel()
	const (
		google     = "https://generativelanguage.googleapis.com/v1beta/openai"
		openRouter = "https://openrouter.ai/api/v1"
		official   = "https://api.openai.com/v1"
		other      = "https://openrouter.ai.example/v1"
		skip       = `"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}`
		mark       = `"cache_control":{"type":"ephemeral"}`
	)
	call := func(id, signature string) llm.Block {
		return llm.Block{Type: llm.ToolUseBlock, ToolCallID: id, ToolName: "f", Input: []byte(`{}`), Signature: signature}
	}
	result := func(id string) llm.Block { return llm.Block{Type: llm.ToolResultBlock, ToolCallID: id, Text: "r"} }
	long := strings.Repeat("x", 50)
	for name, c := range map[string]struct {
		base, model string
		signature   string // of the first call
		count       map[string]int
	}{
		"Gemini 3, another's calls": {google, "gemini-3.8-flash", "", map[string]int{skip: 1, mark: 0, "functions.f:0": 2}},
		"Gemini, by its long name":  {google, "models/gemini-3.1-pro-preview", "", map[string]int{skip: 1}},
		"Gemini 3, its own calls":   {google, "gemini-3.8-flash", "own", map[string]int{skip: 0, `"thought_signature":"own"`: 1}},
		"Gemini 2.5":                {google, "gemini-2.5-pro", "", map[string]int{skip: 0}},
		"Claude by OpenRouter":      {openRouter, "anthropic/claude-sonnet-5", "", map[string]int{skip: 0, mark: 1, "functions.f:0": 0, long: 2}},
		"another by OpenRouter":     {openRouter, "moonshotai/kimi-k3", "", map[string]int{mark: 0, "functions.f:0": 2}},
		"Claude by a gateway":       {other, "anthropic/claude-sonnet-5", "", map[string]int{mark: 0, "functions.f:0": 2}},
		"Mistral":                   {"https://api.mistral.ai/v1", "mistral-large-latest", "", map[string]int{skip: 0, "functions.f:0": 0, long: 0, `"aB3xK9mP2"`: 2, `"tool_call_id"`: 3}},
		"Mistral by OpenRouter":     {openRouter, "mistralai/devstral-medium", "", map[string]int{"functions.f:0": 0, long: 0}},
		"Mixtral on this machine":   {"http://127.0.0.1:8000/v1", "mlx-community/Mixtral-8x7B", "", map[string]int{"functions.f:0": 0, long: 0}},
		"OpenAI":                    {official, "gpt-4.1", "", map[string]int{skip: 0, mark: 0, "functions.f:0": 2, long: 0, `"prompt_cache_key":"chain"`: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &transport{events: delta(`{"content":"c"}`, `"stop"`) + done}
			client := New(Config{BaseURL: c.base, HTTPClient: &http.Client{Transport: server}})
			req := llm.Request{Model: c.model, MaxTokens: 9, CacheKey: "chain", Messages: []llm.Message{
				llm.Text(llm.User, "hi"),
				{Role: llm.Assistant, Blocks: []llm.Block{call("functions.f:0", c.signature), call(long, ""), call("aB3xK9mP2", "")}},
				{Role: llm.User, Blocks: []llm.Block{result("functions.f:0"), result(long), result("aB3xK9mP2")}},
			}}
			if _, err := client.Stream(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			for text, want := range c.count {
				if got := strings.Count(server.sent, text); got != want {
					t.Errorf("%d times %s, want %d: %s", got, text, want, server.sent)
				}
			}
			if req.Messages[1].Blocks[0].Signature != c.signature {
				t.Error("what was sent is changed")
			}
		})
	}
}

// TestResponseCallIDs: ids that are too long for Responses are sent as others.
func TestResponseCallIDs(t *testing.T) {
	t.Parallel()
	fits, long := strings.Repeat("y", 64), strings.Repeat("x", 65)
	server := &transport{events: "data: " + completed + "\n\n"}
	client := NewResponses(Config{HTTPClient: &http.Client{Transport: server}})
	_, err := client.Stream(t.Context(), llm.Request{Model: "gpt-6-sol", MaxTokens: 9, Messages: []llm.Message{
		llm.Text(llm.User, "hi"),
		{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ToolUseBlock, ToolCallID: fits, ToolName: "f"}, {Type: llm.ToolUseBlock, ToolCallID: long, ToolName: "f"}}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: fits}, {Type: llm.ToolResultBlock, ToolCallID: long}}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(server.sent, fits) != 2 || strings.Contains(server.sent, long) || strings.Count(server.sent, `"call_id"`) != 4 {
		t.Errorf("sent %s", server.sent)
	}
}
