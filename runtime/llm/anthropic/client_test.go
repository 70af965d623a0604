package anthropic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/anthropic"
	"github.com/rye-mcp/rye-mcp/runtime/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, anthropic.New, llmtest.Anthropic)
}

func TestStablePrefix(t *testing.T) {
	t.Parallel()
	llmtest.StablePrefix(t, anthropic.New, llmtest.Anthropic)
}

// TestCallIDs: ids of calls that another vendor's model has made are sent as others, which
// are the same at call and result, and different for each call.
func TestCallIDs(t *testing.T) {
	t.Parallel()
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = string(body)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	const id = "functions.look:0"
	req := llm.Request{Model: "m", MaxTokens: 9, Messages: []llm.Message{llm.Text(llm.User, "hi")}}
	for range 2 {
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ToolUseBlock, ToolCallID: id, ToolName: "look"}}},
			llm.Message{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: id, Text: "seen"}}})
	}
	client := anthropic.New(anthropic.Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}})
	if _, err := client.Stream(t.Context(), req, nil); err == nil {
		t.Fatal("no error")
	}
	ids := map[string]int{}
	for _, part := range strings.Split(sent, `id":"`)[1:] {
		rest, _, _ := strings.Cut(part, `"`)
		ids[rest]++
	}
	if len(ids) != 2 || strings.Contains(sent, id) {
		t.Errorf("ids %v in %s", ids, sent)
	}
	for id, n := range ids {
		if n != 2 {
			t.Errorf("%d times %s in %s", n, id, sent)
		}
	}
}
