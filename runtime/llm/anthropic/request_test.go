package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// encoded is the body of a request of which nothing was sent before.
func encoded(t interface{ Fatal(...any) }, req llm.Request) string {
	frame, err := encodeFrame(req.System, req.Tools)
	if err != nil {
		t.Fatal(err)
	}
	var history wire.History
	text, ends, err := history.Encode(req.Messages, nil, encodeMessage)
	if err != nil {
		t.Fatal(err)
	}
	own, err := json.Marshal(encode(req))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := http.NewRequest(http.MethodPost, "http://127.0.0.1", bytes.NewReader(own))
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Prepend(sent, wire.Messages, frame, marked(req.Messages, text, ends)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(sent.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestEncode(t *testing.T) {
	t.Parallel()
	const mark = `"cache_control":{"type":"ephemeral"}`
	got := encoded(t, llm.Request{
		Model: "m", System: "sys", MaxTokens: 5,
		Tools: []llm.Tool{{Name: "a", Schema: []byte(`{"type":"object","$defs":{"x":{}}}`)}, {Name: "b", Description: "B."}},
		Messages: []llm.Message{
			llm.Text(llm.User, "first"),
			{Role: llm.Assistant, Blocks: []llm.Block{
				{Type: llm.ReasoningBlock, Text: "hm", Signature: "sig"},
				{Type: llm.ReasoningBlock, Text: "another vendor's"},
				{Type: llm.ReasoningBlock, Signature: redactedPrefix + "xyz"},
				{Type: llm.ToolUseBlock, ToolCallID: "1", ToolName: "a"},
			}},
			{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "1", Text: "r", IsError: true}}},
			llm.Text(llm.Assistant, "said"),
			llm.Text(llm.User, "last"),
		},
	})
	want := `{"max_tokens":5,"system":[{"text":"sys",` + mark + `,"type":"text"}],` +
		`"tools":[{"input_schema":{"type":"object","$defs":{"x":{}}},"name":"a"},` +
		`{"input_schema":{"type":"object","properties":{}},"name":"b","description":"B.",` + mark + `}],"messages":[` +
		`{"content":[{"text":"first","type":"text"}],"role":"user"},` +
		`{"content":[{"signature":"sig","thinking":"hm","type":"thinking"},{"data":"xyz","type":"redacted_thinking"},` +
		`{"id":"1","input":{},"name":"a","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"tool_use_id":"1","is_error":true,"content":[{"text":"r","type":"text"}],"type":"tool_result",` + mark + `}],"role":"user"},` +
		`{"content":[{"text":"said","type":"text"}],"role":"assistant"},` +
		`{"content":[{"text":"last","type":"text",` + mark + `}],"role":"user"}],"model":"m"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestEncodeCutReasoning sends on what is left of answers that were cut off
// while the model reasoned.
func TestEncodeCutReasoning(t *testing.T) {
	t.Parallel()
	thinking := llm.Block{Type: llm.ReasoningBlock, Text: "hm", Signature: "sig"}
	redacted := llm.Block{Type: llm.ReasoningBlock, Signature: redactedPrefix + "xyz"}
	got := encoded(t, llm.Request{Model: "m", MaxTokens: 5, Messages: []llm.Message{
		{Role: llm.Assistant, Blocks: []llm.Block{thinking}},
		{Role: llm.Assistant, Blocks: []llm.Block{redacted, thinking, {Type: llm.TextBlock, Text: "\n"}}},
		{Role: llm.Assistant, Blocks: []llm.Block{thinking, {Type: llm.TextBlock, Text: "said"}, redacted}},
	}})
	want := `{"max_tokens":5,"messages":[{"content":[{"signature":"sig","thinking":"hm","type":"thinking"},` +
		`{"text":"said","type":"text"}],"role":"assistant"}],"model":"m"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEncodeRefusesBadSchema(t *testing.T) {
	t.Parallel()
	if _, err := encodeFrame("", []llm.Tool{{Name: "a", Schema: []byte("{")}}); err == nil {
		t.Error("a schema that is not JSON was accepted")
	}
}

// TestEncodeProperties: whatever a conversation holds, the API's rules are kept.
func TestEncodeProperties(t *testing.T) {
	t.Parallel()
	block := rapid.Custom(func(t *rapid.T) llm.Block {
		text := rapid.SampledFrom([]string{"", " ", "x", "\n"})
		return llm.Block{
			Type: rapid.SampledFrom([]llm.BlockType{
				llm.TextBlock, llm.ReasoningBlock, llm.ToolUseBlock, llm.ToolResultBlock, "unknown",
			}).Draw(t, "type"),
			Text: text.Draw(t, "text"), Signature: text.Draw(t, "signature"), ToolCallID: "id", ToolName: "n",
			Input: json.RawMessage(rapid.SampledFrom([]string{"", "{}", `{"a":1}`, "[]", "{", "\xff"}).Draw(t, "input")),
		}
	})
	message := rapid.Custom(func(t *rapid.T) llm.Message {
		return llm.Message{
			Role:   rapid.SampledFrom([]llm.Role{llm.User, llm.Assistant}).Draw(t, "role"),
			Blocks: rapid.SliceOfN(block, 0, 4).Draw(t, "blocks"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		got := encoded(t, llm.Request{
			System:   rapid.SampledFrom([]string{"", "sys"}).Draw(t, "system"),
			Tools:    []llm.Tool{{Name: "a"}, {Name: "b"}},
			Messages: rapid.SliceOfN(message, 0, 6).Draw(t, "messages"),
		})
		if n := strings.Count(got, "cache_control"); n > 4 {
			t.Errorf("%d marks in %s", n, got)
		}
		for _, refused := range []string{`"content":[]`, `"text":""`, `"text":" "`, `"input":[`, `"input":null`, `"type":"thinking"}],"role"`, `"type":"redacted_thinking"}],"role"`} {
			if strings.Contains(got, refused) {
				t.Errorf("%s in %s", refused, got)
			}
		}
	})
}

// TestGrowingConversation: what is kept of earlier calls and what is encoded for
// this one make the same request as encoding it all, also when the conversation
// goes another way.
func TestGrowingConversation(t *testing.T) {
	t.Parallel()
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := New(Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}})

	call := llm.Block{Type: llm.ToolUseBlock, ToolCallID: "1", ToolName: "a", Input: json.RawMessage(`{"x":"<&>"}`)}
	talk := []llm.Message{
		llm.Text(llm.User, "first"),
		{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ReasoningBlock, Text: "hm", Signature: "sig"}, call}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "1", Text: "<r>"}}},
		{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ReasoningBlock, Text: "cut off", Signature: "sig"}}},
		llm.Text(llm.User, ""), llm.Text(llm.User, "go on"), llm.Text(llm.Assistant, "said"), llm.Text(llm.User, "last"),
	}
	other := append(slices.Clone(talk[:2]), llm.Text(llm.User, "another way"), llm.Text(llm.Assistant, "x"), llm.Text(llm.User, "y"))
	for _, messages := range [][]llm.Message{
		talk[:1], talk[:3], talk[:5], talk[:6], talk, talk, other, talk[:3], talk,
	} {
		req := llm.Request{Model: "m", System: "sys", MaxTokens: 5, Tools: []llm.Tool{{Name: "a"}}, Messages: messages}
		_, _ = client.Stream(t.Context(), req, nil) // the server says nothing
		if want := strings.TrimSuffix(encoded(t, req), "}") + `,"stream":true}`; string(sent) != want {
			t.Errorf("%d messages:\ngot  %s\nwant %s", len(messages), sent, want)
		}
	}
}

// TestFrame: what requests have in common is encoded once, and again when it changes.
func TestFrame(t *testing.T) {
	t.Parallel()
	var f frame
	tools := []llm.Tool{{Name: "a"}, {Name: "b"}}
	text := func(system string, tools []llm.Tool) []byte {
		t.Helper()
		got, err := f.encode(system, tools)
		if err != nil {
			t.Fatal(err)
		}
		want, err := encodeFrame(system, tools)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %s, want %s (%v)", got, want, err)
		}
		return got
	}
	first := text("sys", tools)
	if again := text("sys", tools); &again[0] != &first[0] {
		t.Error("it was encoded again")
	}
	text("other", tools)
	text("other", tools[:1])
	text("other", []llm.Tool{{Name: "c"}})
	text("", nil)
	if _, err := f.encode("", []llm.Tool{{Name: "a", Schema: []byte("{")}}); err == nil {
		t.Error("a schema that is not JSON was accepted")
	}
	text("", nil)
}
