package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/llmtest"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// respond asks a server that answers with the given events, one a line, and returns
// the body of the request as well.
func respond(t *testing.T, events []string, req llm.Request) (llm.Response, []llm.Delta, string, error) {
	t.Helper()
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var deltas []llm.Delta
	client := NewResponses(Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}})
	resp, err := client.Stream(t.Context(), req, func(d llm.Delta) { deltas = append(deltas, d) })
	return resp, deltas, string(sent), err
}

const completed = `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","usage":{"input_tokens":9,"output_tokens":4,"total_tokens":13}}}`

func itemDone(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

func TestResponsesDialects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		events []string
		want   string // the response as JSON
	}{
		{"nothing but the whole", []string{`{"type":"response.completed","response":{"status":"completed","output":[
			{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"e"},
			{"type":"message","content":[{"type":"output_text","text":"c"},{"type":"output_text","text":"d"}]},
			{"type":"function_call","name":"f","call_id":"a","arguments":"{}"}]}}`},
			`[{"type":"reasoning","text":"hm\n\nso","signature":"{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"},{\"type\":\"summary_text\",\"text\":\"so\"}],\"encrypted_content\":\"e\"}"},` +
				`{"type":"text","text":"cd"},{"type":"tool_use","tool_call_id":"a","tool_name":"f","input":{}}] tool_use`},
		{"no items in one piece", []string{
			`{"type":"response.output_text.delta","item_id":"i","output_index":0,"delta":"c"}`, `{"type":"response.output_text.delta","item_id":"i","output_index":0,"delta":"d"}`, completed},
			`[{"type":"text","text":"cd"}] end`},
		{"items with the same index", []string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"x","call_id":"a","name":"f"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"y","call_id":"b","name":"g"}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"x","delta":"[1"}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"y","delta":"{}"}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"x","delta":"]"}`, completed},
			`[{"type":"tool_use","tool_call_id":"a","tool_name":"f","input":[1]},{"type":"tool_use","tool_call_id":"b","tool_name":"g","input":{}}] tool_use`},
		{"a call without ids", []string{itemDone(0, `{"type":"function_call","name":"f"}`), completed},
			`[{"type":"tool_use","tool_call_id":"r-0","tool_name":"f","input":{}}] tool_use`},
		{"a phase", []string{itemDone(0, `{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"c"}]}`), completed},
			`[{"type":"text","text":"c","signature":"phase:commentary"}] end`},
		{"thoughts that are open", []string{itemDone(0, `{"type":"reasoning","id":"x","content":[{"type":"reasoning_text","text":"t"}]}`), itemDone(1, `{"type":"message","content":[{"text":"c"}]}`), completed},
			`[{"type":"reasoning","text":"t","signature":"{\"type\":\"reasoning\",\"id\":\"x\",\"summary\":[],\"content\":[{\"type\":\"reasoning_text\",\"text\":\"t\"}]}"},{"type":"text","text":"c"}] end`},
		{"thoughts that were kept there", []string{itemDone(0, `{"type":"reasoning","id":"x","summary":[]}`), itemDone(1, `{"type":"message","content":[{"text":"c"}]}`), completed},
			`[{"type":"text","text":"c"}] end`},
		{"refusal", []string{`{"type":"response.refusal.delta","delta":"no"}`, completed}, `[{"type":"text","text":"no"}] refusal`},
		{"refusal in one piece", []string{itemDone(0, `{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`), completed}, `[{"type":"text","text":"no"}] refusal`},
		{"arguments cut", []string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\":"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`},
			`tool_use {"x": max_tokens`},
		{"a filter, in Google's words", []string{`{"type":"response.output_text.delta","delta":"c"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"SAFETY"}}}`},
			`[{"type":"text","text":"c"}] refusal SAFETY`},
		{"a reason that is new", []string{`{"type":"response.output_text.delta","delta":"c"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"whatever"}}}`},
			`[{"type":"text","text":"c"}] other whatever`},
		{"new kinds of event and of item", []string{`{"type":"response.shiny.delta","delta":{"a":1},"output_index":"x"}`,
			itemDone(0, `{"type":"web_search_call","action":{"x":1}}`), `{"type":"response.output_text.delta","output_index":1,"delta":"c"}`, completed},
			`[{"type":"text","text":"c"}] end`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for i, e := range test.events {
				test.events[i] = strings.Join(strings.Fields(e), " ")
			}
			resp, _, _, err := respond(t, test.events, hello)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := json.Marshal(resp.Blocks)
			if err != nil {
				b := resp.Blocks[0]
				blocks = fmt.Appendf(nil, "%s %s", b.Type, b.Input)
			}
			if got := strings.TrimSpace(fmt.Sprintf("%s %s %s", blocks, resp.StopReason, resp.StopWord)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestResponsesStreamed: what arrives in pieces is told once, and what comes whole
// without pieces is told too.
func TestResponsesStreamed(t *testing.T) {
	t.Parallel()
	_, deltas, _, err := respond(t, []string{
		`{"type":"response.reasoning_summary_part.added","output_index":0}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"hm"}`,
		`{"type":"response.reasoning_summary_part.added","output_index":0}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"so"}`,
		itemDone(0, `{"type":"reasoning","summary":[{"text":"hm"},{"text":"so"}],"encrypted_content":"e"}`),
		`{"type":"response.output_text.delta","output_index":1,"delta":"c"}`,
		itemDone(1, `{"type":"message","content":[{"text":"cd"}]}`),
		itemDone(2, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`), completed,
	}, hello)
	var got []string
	for _, d := range deltas {
		got = append(got, fmt.Sprintf("%s %q %d", d.Type, d.Text, d.Hidden))
	}
	want := []string{`reasoning "hm" 0`, `reasoning "\n\n" 0`, `reasoning "so" 0`, `text "c" 0`, `text "d" 0`, `tool_use "f" 0`, `tool_use "" 2`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBrokenResponses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		event     string
		status    int
		typ, says string
	}{
		{"nothing", "[DONE]", 0, wire.TypeConnection, "ended before"},
		{"no end", `{"type":"response.output_text.delta","delta":"c"}`, 0, wire.TypeConnection, "ended before"},
		{"no JSON", "{oops", 200, wire.TypeMalformed, "event of the answer"},
		{"no object", `[1]`, 200, wire.TypeMalformed, "event of the answer"},
		{"no type", `{"x":1}`, 200, wire.TypeMalformed, "has no type"},
		{"an item that is none", `{"type":"response.output_item.done","item":5}`, 200, wire.TypeMalformed, "item of the answer"},
		{"an answer that is none", `{"type":"response.completed","response":"x"}`, 200, wire.TypeMalformed, "event of the answer"},
		{"an error", `{"type":"error","code":"rate_limit_exceeded","message":"slow"}`, 429, "", "slow"},
		{"an error below error", `{"type":"error","error":{"type":"server_error","message":"broke"}}`, 500, "server_error", "broke"},
		{"an error without a type", `{"error":{"code":"insufficient_quota","message":"pay"}}`, 429, "", "pay"},
		{"failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"too long"}}}`, 400, "", "too long"},
		{"failed for a prompt", `{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"not this"}}}`, 400, "", "not this"},
		{"failed without a word", `{"type":"response.failed"}`, 500, "", "not why"},
		{"cancelled", `{"type":"response.cancelled","response":{"status":"cancelled"}}`, 0, wire.TypeConnection, "ended before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, _, _, err := respond(t, []string{test.event}, hello)
			var failure *llm.APIError
			if !errors.As(err, &failure) || failure.Type != test.typ || failure.Status != test.status || !strings.Contains(failure.Message, test.says) {
				t.Errorf("got %v (%+v)", err, failure)
			}
		})
	}
}

// TestResponsesRequest: the whole of a request.
func TestResponsesRequest(t *testing.T) {
	t.Parallel()
	thought := `{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"abc"}`
	req := llm.Request{
		Model: "gpt-6-sol", System: "sys", MaxTokens: 99, CacheKey: "chain", Effort: "low",
		Tools: []llm.Tool{{Name: "f", Description: "d"}},
		Messages: []llm.Message{
			llm.Text(llm.User, "hi"),
			{Role: llm.Assistant, Blocks: []llm.Block{
				{Type: llm.ReasoningBlock, Text: "shown", Signature: thought},
				{Type: llm.TextBlock, Text: "I look.", Signature: "phase:commentary"},
				{Type: llm.ReasoningBlock, Text: "another vendor's", Signature: "c2ln"},
				{Type: llm.ToolUseBlock, ToolCallID: "a", ToolName: "f", Input: []byte(`{"x":`)},
			}},
			{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "a", IsError: true}}},
			{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ReasoningBlock, Signature: thought}}},
			llm.Text(llm.User, "on"),
		},
	}
	_, _, sent, err := respond(t, []string{completed}, req)
	want := `{"include":["reasoning.encrypted_content"],"input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},` + thought + `,` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}],"phase":"commentary"},` +
		`{"type":"function_call","call_id":"a","name":"f","arguments":"{\"invalid_json\":\"{\\\"x\\\":\"}"},` +
		`{"type":"function_call_output","call_id":"a","output":"Error: (no output)"},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"on"}]}],` +
		`"instructions":"sys","max_output_tokens":99,"model":"gpt-6-sol","prompt_cache_key":"chain","reasoning":{"effort":"low"},"store":false,"stream":true,` +
		`"tools":[{"description":"d","name":"f","parameters":{"type":"object","properties":{}},"strict":false,"type":"function"}]}`
	if err != nil || sent != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, sent, want)
	}
	_, _, sent, err = respond(t, []string{completed}, llm.Request{Model: "gpt-4.1", Messages: req.Messages[:1], MaxTokens: 20})
	if err != nil || strings.Contains(sent, "include") || strings.Contains(sent, "reasoning") {
		t.Errorf("a model that does not think: %s, %v", sent, err)
	}
}

// TestResponsesPrefix: what a request has of the one before it has to the byte, so that
// the provider finds it in its cache.
func TestResponsesPrefix(t *testing.T) {
	t.Parallel()
	llmtest.StablePrefix(t, NewResponses, llmtest.Responses)
}

// TestAttackResponsesHugeEvents: a provider sends events of Responses whose lists decode to many times their size.
// An event with more values than any answer has is refused before it is decoded.
func TestAttackResponsesHugeEvents(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	llmtest.HugeEvents(t, NewResponses, `data: {"type":"response.completed","response":{"output":`, "}}")
}

// TestAttackManyItems: an answer consists of endless items with nothing in them, each of which is looked for among all.
// It is refused at ten thousand.
func TestAttackManyItems(t *testing.T) {
	t.Parallel()
	_, call := wire.Config{}.Begin(t.Context())
	defer call.End()
	a := responseAnswer{}
	for i := range maxItems + 1 {
		err := a.add(call, fmt.Appendf(nil, `{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call"}}`, i))
		if (err != nil) != (i == maxItems) {
			t.Fatalf("item %d: %v", i, err)
		}
	}
}

// TestAttackEndlessReasoning: a provider sends ten megabytes of encrypted reasoning, which would be kept and sent back with every turn.
// The answer is broken off at four, and nobody asks for it again.
func TestAttackEndlessReasoning(t *testing.T) {
	t.Parallel()
	item := `{"type":"reasoning","summary":[],"encrypted_content":"` + strings.Repeat("x", 10<<20) + `"}`
	_, _, _, err := respond(t, []string{itemDone(0, item), completed}, hello)
	var failure *llm.APIError
	if !errors.As(err, &failure) || failure.Type != wire.TypeTooLong || failure.Status != http.StatusBadRequest {
		t.Errorf("got %v", err)
	}
}

func FuzzResponses(f *testing.F) {
	f.Add(`{"type":"response.output_item.added","output_index":-1,"item":{"type":"function_call","name":"f"}}` + "\n" + completed)
	f.Add(`{"type":"response.reasoning_summary_text.delta","delta":"a","output_index":1e9}` + "\n" + itemDone(0, `{"type":"reasoning","summary":[{}]}`))
	f.Add(`{"type":"error","code":5,"message":{}}`)
	f.Add(`{"type":"response.incomplete","response":{"usage":{"input_tokens":-1,"total_tokens":9},"incomplete_details":null}}`)
	f.Fuzz(func(t *testing.T, lines string) {
		_, call := wire.Config{}.Begin(context.Background())
		defer call.End()
		a := &responseAnswer{}
		for line := range strings.Lines(lines) {
			if err := a.add(call, []byte(line)); err != nil {
				var failure *llm.APIError
				if !errors.As(err, &failure) && !errors.Is(err, wire.ErrCut) {
					t.Errorf("error %v (%T)", err, err)
				}
				break
			}
		}
		resp := a.response()
		if u := resp.Usage; min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens) < 0 {
			t.Errorf("negative usage %+v", u)
		}
		// An answer that was taken can be sent back.
		items, err := encodeItems(llm.Message{Role: llm.Assistant, Blocks: resp.Blocks})
		if err != nil || !json.Valid(fmt.Appendf(nil, "[%s]", items)) {
			t.Errorf("sent back as %s, %v", items, err)
		}
	})
}
