package lenient_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/anthropic"
	"github.com/rye-mcp/rye-mcp/runtime/llm/lenient"
	"github.com/rye-mcp/rye-mcp/runtime/llm/openai"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vendor is one that refuses requests with certain words in them.
type vendor struct {
	open    func(wire.Config) llm.Client
	refuses map[string]string // what is in the request to the words of the refusal
	answer  string
	status  int // of refusals; 0: 400
}

const (
	claude = "event: message_start\n" + `data: {"type":"message_start","message":{"id":"1","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" +
		"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"fine"}}` + "\n\n" +
		"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n" + "event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n"
	gpt  = `data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"fine"}]}]}}` + "\n\n"
	chat = `data: {"choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}]}` + "\n\n"
)

func vendors() map[string]vendor {
	return map[string]vendor{
		"Anthropic": {open: anthropic.New, refuses: map[string]string{
			`"signature":"old"`: "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
			`"effort"`:          "This model does not support the effort parameter.",
		}, answer: claude},
		"Responses": {open: openai.NewResponses, refuses: map[string]string{
			`"encrypted_content":"old"`: "The encrypted content old could not be verified.",
			`"effort"`:                  "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
		}, answer: gpt},
		"Chat Completions": {open: openai.New, refuses: map[string]string{
			`"thought_signature":"old"`: "Thought signature is not valid.",
			`"reasoning_effort"`:        "Unrecognized request argument supplied: reasoning_effort",
		}, answer: chat},
	}
}

// serve answers as a vendor and keeps the bodies of what it was asked.
func (v vendor) serve(t *testing.T) (llm.Client, func() []string) {
	t.Helper()
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		for words, message := range v.refuses {
			if strings.Contains(string(body), words) {
				w.WriteHeader(cmp.Or(v.status, http.StatusBadRequest))
				_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": message}})
				return
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, v.answer)
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	client := lenient.New(v.open(wire.Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}}))
	return client, func() []string { return bodies }
}

// talk is a conversation in which every vendor finds what it has signed itself.
func talk(signed string) []llm.Message {
	return []llm.Message{
		llm.Text(llm.User, "hi"),
		{Role: llm.Assistant, Blocks: []llm.Block{
			{Type: llm.ReasoningBlock, Text: "hm", Signature: signed},
			{Type: llm.ReasoningBlock, Signature: `{"type":"reasoning","summary":[],"encrypted_content":"` + signed + `"}`},
			{Type: llm.ToolUseBlock, ToolCallID: "c", ToolName: "f", Input: []byte("{}"), Signature: signed},
		}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "c", Text: "seen"}}},
	}
}

// TestConcessions: what is refused is left out, then and in all later requests, and
// what comes later is not.
func TestConcessions(t *testing.T) {
	t.Parallel()
	for name, v := range vendors() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, bodies := v.serve(t)
			sent := 0
			req := llm.Request{Model: "m", MaxTokens: 9, Effort: "max", Messages: talk("old"), Sent: func(int64) { sent++ }}
			resp, err := client.Stream(t.Context(), req, nil)
			if err != nil || len(resp.Blocks) != 1 || resp.Blocks[0].Text != "fine" {
				t.Fatalf("got %+v, %v", resp, err)
			}
			if len(resp.Warnings) != 2 || !slices.ContainsFunc(resp.Warnings, func(w string) bool { return strings.Contains(w, `effort="max"`) }) {
				t.Errorf("warnings %q", resp.Warnings)
			}
			if n := len(bodies()); n != 3 || sent != 1 {
				t.Errorf("%d requests, %d times told that one has left", n, sent)
			}
			req.Messages = append(slices.Clone(req.Messages), talk("new")[1:]...)
			resp, err = client.Stream(t.Context(), req, nil)
			if err != nil || len(resp.Warnings) > 0 || len(bodies()) != 4 {
				t.Errorf("got %+v, %v after %d requests", resp, err, len(bodies()))
			}
			last := bodies()[3]
			if strings.Contains(last, `old`) || strings.Contains(last, "effort") || !strings.Contains(last, `new`) || !strings.Contains(last, "seen") {
				t.Errorf("sent %s", last)
			}
		})
	}
}

// TestNoConcession: other refusals, and those that nothing can be done about, are the
// caller's, as are failures that are no refusals.
func TestNoConcession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words, message string
		messages       []llm.Message
	}{
		"another":        {`"model"`, "the model does not exist", talk("old")},
		"nothing to do":  {`"model"`, "thinking is not for you", talk("old")[:1]},
		"again and more": {`"model"`, "thinking is not for you", talk("old")},
	} {
		v := vendors()["Anthropic"]
		v.refuses = map[string]string{c.words: c.message}
		client, bodies := v.serve(t)
		_, err := client.Stream(t.Context(), llm.Request{Model: "m", MaxTokens: 9, Messages: c.messages}, nil)
		var failure *llm.APIError
		if !errors.As(err, &failure) || !strings.Contains(failure.Message, c.message) || len(bodies()) > 2 {
			t.Errorf("%s: %v after %d requests", name, err, len(bodies()))
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	client, bodies := vendors()["Anthropic"].serve(t)
	if _, err := client.Stream(gone, llm.Request{Model: "m", MaxTokens: 9, Effort: "max", Messages: talk("old")}, nil); !errors.Is(err, context.Canceled) || len(bodies()) > 0 {
		t.Errorf("%v after %d requests", err, len(bodies()))
	}
}
