package anthropic

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// collect feeds events, one JSON object a line.
func collect(t *testing.T, lines string) (*answer, error) {
	t.Helper()
	a := &answer{}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		if err := a.add(e); err != nil {
			return a, err
		}
	}
	return a, nil
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	a, err := collect(t, `
{"type":"message_start","message":{"model":"m","usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":7}}}
{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"xyz"}}
{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"early "}}
{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"late"}}
{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}
{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"i","name":"n","input":{"whole":true}}}
{"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"s","name":"web"}}
{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"ignored"}}
{"type":"brand_new_event"}
{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":9}}
{"type":"message_stop"}`)
	if err != nil {
		t.Fatal(err)
	}
	got, want := a.response(), llm.Response{
		Model: "m", StopReason: llm.StopMaxTokens,
		Usage: llm.Usage{InputTokens: 5, OutputTokens: 9, CacheReadTokens: 7, Reported: true},
		Blocks: []llm.Block{
			{Type: llm.ReasoningBlock, Signature: "redacted_thinking:xyz"},
			{Type: llm.TextBlock, Text: "early late"},
			{Type: llm.ToolUseBlock, ToolCallID: "i", ToolName: "n", Input: json.RawMessage(`{"whole":true}`)},
		},
	}
	gotJSON, _ := json.Marshal(got)
	wantJSON, _ := json.Marshal(want)
	if string(gotJSON) != string(wantJSON) || !a.complete {
		t.Errorf("got  %s\nwant %s", gotJSON, wantJSON)
	}
}

func TestAnswerMalformed(t *testing.T) {
	t.Parallel()
	for _, events := range []string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`,
		`{"type":"content_block_start","index":-1,"content_block":{"type":"text"}}`,
		`{"type":"content_block_start","index":999999999,"content_block":{"type":"text"}}`,
	} {
		if _, err := collect(t, events); err == nil {
			t.Errorf("accepted %s", events)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"type":"message_start","message":{"usage":{"input_tokens":-5}}}`)
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":[1]}}` + "\n" +
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`)
	f.Fuzz(func(t *testing.T, lines string) {
		a, err := collect(t, lines)
		if err != nil {
			return
		}
		if u := a.response().Usage; min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens) < 0 {
			t.Errorf("negative usage %+v", u)
		}
	})
}

// TestEndOfConnectionIsNoEnd: an answer is complete when the protocol says so.
func TestEndOfConnectionIsNoEnd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		events string
		ok     bool
	}{
		{"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n", false},
		{"", false},
		{"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, test.events)
		}))
		transport := &http.Transport{}
		client := New(Config{BaseURL: server.URL + "/v1/", HTTPClient: &http.Client{Transport: transport}})
		_, err := client.Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.Text(llm.User, "hi")}}, nil)
		if (err == nil) != test.ok || err != nil && !errors.Is(err, wire.ErrCut) {
			t.Errorf("%q: got %v", test.events, err)
		}
		transport.CloseIdleConnections()
		server.Close()
	}
}
