package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// ask streams from a server that answers with the given events, and returns the
// body of the request as well.
func ask(t *testing.T, events string, req llm.Request) (llm.Response, string, error) {
	t.Helper()
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := New(Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}})
	resp, err := client.Stream(context.Background(), req, nil)
	return resp, string(sent), err
}

var hello = llm.Request{Model: "m", Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 7}

func delta(delta, finish string) string {
	return fmt.Sprintf(`data: {"id":"c","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
}

const done = "data: [DONE]\n\n"

func TestDialects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, events, want string // want is the response as JSON
	}{
		{"calls without an index",
			delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`, "null") +
				delta(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`, "null") +
				delta(`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":""}}]}`, `"stop"`) + done,
			`[{"type":"tool_use","tool_call_id":"a","tool_name":"f","input":{"x":1}},{"type":"tool_use","tool_call_id":"b","tool_name":"g","input":{}}] tool_use`},
		{"calls with the same index",
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, "null") +
				delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`) + done,
			`[{"type":"tool_use","tool_call_id":"a","tool_name":"f","input":{}},{"type":"tool_use","tool_call_id":"b","tool_name":"g","input":{}}] tool_use`},
		{"calls that interleave",
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"["}},{"index":1,"id":"b","function":{"name":"g"}}]}`, "null") +
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"]"}},{"index":1,"function":{"arguments":"{}"}}]}`, `"tool_calls"`) + done,
			`[{"type":"tool_use","tool_call_id":"a","tool_name":"f","input":[]},{"type":"tool_use","tool_call_id":"b","tool_name":"g","input":{}}] tool_use`},
		{"a call without an id",
			delta(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`) + done,
			`[{"type":"tool_use","tool_call_id":"c-0","tool_name":"f","input":{}}] tool_use`},
		{"reasoning twice",
			delta(`{"reasoning":"a","reasoning_content":"a"}`, "null") + delta(`{"reasoning":"b"}`, "null") + delta(`{"content":"c"}`, `"stop"`) + done,
			`[{"type":"reasoning","text":"ab"},{"type":"text","text":"c"}] end`},
		{"refusal", delta(`{"refusal":"no"}`, "null") + delta(`{}`, `"stop"`) + done, `[{"type":"text","text":"no"}] refusal`},
		{"comments, and no end mark", ": PROCESSING\n\n: PROCESSING\n\nevent: x\n" + delta(`{"content":"c"}`, `"stop"`),
			`[{"type":"text","text":"c"}] end`},
		{"another answer beside it", `data: {"choices":[{"index":1,"delta":{"content":"no"}}]}` + "\n\n" + delta(`{"content":"c"}`, `"stop"`) + done,
			`[{"type":"text","text":"c"}] end`},
		{"an end in Google's words", delta(`{"content":"c"}`, `"STOP"`) + done, `[{"type":"text","text":"c"}] end`},
		{"a filter, in Google's words", delta(`{"content":"c"}`, `"content_filter: RECITATION"`) + done,
			`[{"type":"text","text":"c"}] refusal content_filter: RECITATION`},
		{"a call that could not be read", delta(`{}`, `"function_call_filter: MALFORMED_FUNCTION_CALL"`) + done,
			`null failed function_call_filter: MALFORMED_FUNCTION_CALL`},
		{"broken off with a call", delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `"insufficient_system_resource"`) + done,
			`[{"type":"tool_use","tool_call_id":"a","tool_name":"f","input":{}}] failed insufficient_system_resource`},
		{"a word that is new", delta(`{"content":"c"}`, `"whatever"`) + done, `[{"type":"text","text":"c"}] other whatever`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resp, _, err := ask(t, test.events, hello)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := json.Marshal(resp.Blocks)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(fmt.Sprintf("%s %s %s", blocks, resp.StopReason, resp.StopWord)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, events, typ, says string }{
		{"nothing", "", wire.TypeConnection, "is empty"},
		{"no finish", delta(`{"content":"c"}`, "null") + done, wire.TypeConnection, "ended before"},
		{"no JSON", "data: {oops\n\n", wire.TypeMalformed, "event of the answer"},
		{"error after comments", ": PROCESSING\n\n" + `data: {"error":{"type":"server_error","message":"broke"}}` + "\n\n", "server_error", "broke"},
		{"error that is only text", `data: {"error":"broke"}` + "\n\n", "", "broke"},
		{"error in a chunk", `data: {"id":"c","error":{"code":502,"message":"upstream"},"choices":[{"delta":{},"finish_reason":"error"}]}` + "\n\n", "", "upstream"},
		{"error instead of a stream", `{"error":{"type":"invalid_request_error","message":"bad"}}`, "invalid_request_error", "bad"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := ask(t, test.events, hello)
			var failure *llm.APIError
			if !errors.As(err, &failure) || failure.Type != test.typ || !strings.Contains(failure.Message, test.says) {
				t.Errorf("got %v (%+v)", err, failure)
			}
		})
	}
}

// TestWholeBeforeTheEnd: an answer that the model has finished is paid for, and is taken
// when the stream behind it breaks or falls silent.
func TestWholeBeforeTheEnd(t *testing.T) {
	t.Parallel()
	finished := delta(`{"content":"c"}`, `"stop"`)
	const counted = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
	for name, c := range map[string]struct {
		events string
		hangs  bool
		want   string
	}{
		"cut":                     {events: finished + counted, want: "c true"},
		"silent":                  {events: finished + counted, hangs: true, want: "c true"},
		"cut before the usage":    {events: finished, want: "c false"},
		"cut in the answer":       {events: delta(`{"content":"c"}`, "null"), want: wire.TypeConnection},
		"silent in the answer":    {events: delta(`{"content":"c"}`, "null"), hangs: true, want: wire.TypeStalled},
		"an error after the end":  {events: finished + `data: {"error":{"type":"server_error","message":"broke"}}` + "\n\n", want: "server_error"},
		"no sense behind the end": {events: finished + "data: {oops\n\n", want: wire.TypeMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // else its end is not noticed
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.events)
				_ = http.NewResponseController(w).Flush()
				if c.hangs {
					<-r.Context().Done()
				}
				panic(http.ErrAbortHandler)
			}))
			defer server.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			stall := time.Minute
			if c.hangs {
				stall = 100 * time.Millisecond
			}
			client := New(Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}, StallTimeout: stall})
			resp, err := client.Stream(t.Context(), hello, nil)
			got := fmt.Sprint(llm.TextOf(resp.Blocks), " ", resp.Usage.Reported)
			if failure, ok := errors.AsType[*llm.APIError](err); ok {
				got = failure.Type
			}
			if got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestThoughtSignatures(t *testing.T) {
	t.Parallel()
	resp, _, err := ask(t, delta(
		`{"tool_calls":[{"index":0,"id":"a","extra_content":{"google":{"thought_signature":"s1"}},"function":{"name":"f","arguments":"{}"}},`+
			`{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`)+done, hello)
	if err != nil || resp.Blocks[0].Signature != "s1" || resp.Blocks[1].Signature != "" {
		t.Fatalf("got %+v, %v", resp.Blocks, err)
	}
	next := hello
	next.Messages = append(next.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks})
	_, sent, err := ask(t, delta(`{"content":"c"}`, `"stop"`)+done, next)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s1"}}}`
	if !strings.Contains(sent, want) || strings.Count(sent, "extra_content") != 1 || !strings.Contains(sent, `"stream":true`) {
		t.Errorf("sent %s", sent)
	}
}

// TestSignedText: the signature of an answer without calls stands beside its text.
func TestSignedText(t *testing.T) {
	t.Parallel()
	resp, _, err := ask(t, delta(`{"content":"c"}`, "null")+delta(`{"content":"","extra_content":{"google":{"thought_signature":"t1"}}}`, `"stop"`)+done, hello)
	if err != nil || len(resp.Blocks) != 1 || resp.Blocks[0].Signature != "t1" {
		t.Fatalf("got %+v, %v", resp.Blocks, err)
	}
	next := hello
	next.Messages = append(next.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, llm.Text(llm.User, "on"))
	_, sent, err := ask(t, delta(`{"content":"d"}`, `"stop"`)+done, next)
	if want := `{"role":"assistant","content":"c","extra_content":{"google":{"thought_signature":"t1"}}}`; err != nil || !strings.Contains(sent, want) {
		t.Errorf("sent %s, %v", sent, err)
	}
}

// TestReasoningDetails: what OpenRouter signs comes in pieces and goes back whole.
func TestReasoningDetails(t *testing.T) {
	t.Parallel()
	const call = `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`
	resp, _, err := ask(t, delta(`{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","index":0,"format":"f1","text":"h\"","signature":null}]}`, "null")+
		delta(`{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"\u00fcm"}]}`, "null")+
		delta(`{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s1","text":null},{"type":"reasoning.encrypted","index":1,"data":"abc","id":"x","new":[1]}]}`, "null")+
		delta(call, `"tool_calls"`)+done, hello)
	const want = `[{"format":"f1","index":0,"signature":"s1","text":"h\"\u00fcm","type":"reasoning.text"},{"data":"abc","id":"x","index":1,"new":[1],"type":"reasoning.encrypted"}]`
	if err != nil || resp.Blocks[0].Text != "hm" || resp.Blocks[0].Signature != want {
		t.Fatalf("got %+v, %v", resp.Blocks, err)
	}
	next := hello
	next.Messages = append(next.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks})
	_, sent, err := ask(t, delta(`{"content":"c"}`, `"stop"`)+done, next)
	if err != nil || !strings.Contains(sent, `"reasoning_details":`+want) || strings.Contains(sent, "reasoning_content") {
		t.Errorf("sent %s, %v", sent, err)
	}
}

// TestReasoningFields: what was thought goes back in the field that it came in, and in no
// other: DeepSeek demands that, Groq and Cerebras refuse the field of DeepSeek.
func TestReasoningFields(t *testing.T) {
	t.Parallel()
	const call = `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`
	for said, want := range map[string]string{
		`{"reasoning_content":"hm"}`:                  `"reasoning_content":"hm"`,
		`{"reasoning":"hm"}`:                          `"reasoning":"hm"`,
		`{"reasoning_content":"hm","reasoning":"hm"}`: `"reasoning_content":"hm"`,
		`{"reasoning_content":"","reasoning":"hm"}`:   `"reasoning":"hm"`,
	} {
		resp, _, err := ask(t, delta(said, "null")+delta(call, `"tool_calls"`)+done, hello)
		if err != nil || resp.Blocks[0].Text != "hm" {
			t.Fatalf("got %+v, %v", resp.Blocks, err)
		}
		next := hello
		next.Messages = append(next.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks})
		_, sent, err := ask(t, delta(`{"content":"c"}`, `"stop"`)+done, next)
		if err != nil || !strings.Contains(sent, want) || strings.Count(sent, `"reasoning`) != 1 {
			t.Errorf("%s: sent %s, %v", said, sent, err)
		}
	}
}

func TestAllowance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		base, model string
		modern      bool
	}{
		{"https://api.openai.com/v1", "gpt-4o", true},
		{"http://127.0.0.1:11434/v1", "qwen3:8b", false},
		{"https://proxy.example/v1", "gpt-5-mini", true},
		{"https://openrouter.ai/api/v1", "openai/gpt-5", false},
		{"::", "x", false},
	} {
		got, err := encode(llm.Request{Model: test.model, MaxTokens: 9}, test.base)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		body := string(raw)
		if (got.MaxCompletionTokens == 9) != test.modern || strings.Contains(body, `"max_tokens":9`) == test.modern {
			t.Errorf("%+v: %s", test, body)
		}
	}
}

// TestGrowingConversation: a client that has sent a part of a conversation
// before sends the same as one that has not.
func TestGrowingConversation(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	open := func() llm.Client {
		return New(Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}})
	}
	call := llm.Block{Type: llm.ToolUseBlock, ToolCallID: "1", ToolName: "a", Signature: "thought"}
	talk := []llm.Message{
		llm.Text(llm.User, "first"), {Role: llm.Assistant, Blocks: []llm.Block{call}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "1", Text: "<r>"}, {Type: llm.TextBlock, Text: "and"}}},
		{Role: llm.Assistant}, llm.Text(llm.User, "last"),
	}
	client := open()
	for _, n := range []int{1, 3, 4, 5, 2, 5} {
		req := llm.Request{Model: "m", System: "sys", MaxTokens: 5, Messages: talk[:n]}
		_, _ = client.Stream(t.Context(), req, nil) // the server says nothing
		got := <-bodies
		_, _ = open().Stream(t.Context(), req, nil)
		if want := <-bodies; got != want || strings.Index(got, `"sys"`) > strings.Index(got, `"first"`) {
			t.Errorf("%d messages:\ngot  %s\nwant %s", n, got, want)
		}
		if signed := strings.Contains(got, `"thought_signature":"thought"`); signed != (n > 1) {
			t.Errorf("%d messages, signed: %t: %s", n, signed, got)
		}
	}
}

// TestAnswersOfNothing: user and model take turns in what is sent, also where the model has
// said nothing, or has only thought.
func TestAnswersOfNothing(t *testing.T) {
	t.Parallel()
	for name, blocks := range map[string][]llm.Block{
		"nothing": nil, "blanks": {{Type: llm.TextBlock, Text: " \n"}}, "thoughts": {{Type: llm.ReasoningBlock, Text: "hm", Signature: "of another"}},
	} {
		req := hello
		req.Messages = []llm.Message{llm.Text(llm.User, "first"), {Role: llm.Assistant, Blocks: blocks}, llm.Text(llm.User, "go on")}
		_, sent, err := ask(t, delta(`{}`, `"stop"`)+done, req)
		if want := `"first"},{"role":"assistant","content":"(no answer)"},{"role":"user"`; err != nil || !strings.Contains(sent, want) {
			t.Errorf("%s: sent %s, %v; want %s", name, sent, err, want)
		}
	}
}

// TestModelsWithoutTools: what the library refuses is a permanent failure.
func TestModelsWithoutTools(t *testing.T) {
	t.Parallel()
	req := hello
	req.Tools = []llm.Tool{{Name: "f"}}
	req.Model = "gpt-6-astra"
	_, _, err := ask(t, done, req)
	var failure *llm.APIError
	if !errors.As(err, &failure) || failure.Status != http.StatusBadRequest {
		t.Errorf("got %v", err)
	}
	req.Model = "gpt-6-sol"
	if _, sent, err := ask(t, delta(`{}`, `"stop"`)+done, req); err != nil || !strings.Contains(sent, `"reasoning_effort":"none"`) {
		t.Errorf("sent %s, %v", sent, err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]llm.Usage{
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}`: {
			InputTokens: 10, OutputTokens: 5, CacheReadTokens: 60, CacheWriteTokens: 30, Reported: true},
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":400}`: {InputTokens: 100, OutputTokens: 300, Reported: true},
		`{"prompt_tokens":10,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":60}}`: {
			CacheReadTokens: 10},
		`{"prompt_tokens":1.2,"completion_tokens":1e3,"total_tokens":null}`:     {InputTokens: 2, OutputTokens: 1000, Reported: true},
		`{"prompt_tokens":"7","completion_tokens":9e300}`:                       {InputTokens: 7, OutputTokens: math.MaxInt64, Reported: true},
		`{"prompt_tokens":[],"completion_tokens":5,"prompt_tokens_details":[]}`: {OutputTokens: 5},
		`{"prompt_tokens":9,"total_tokens":-9223372036854775808}`:               {InputTokens: 9},
	} {
		var u usage
		if err := json.Unmarshal([]byte(in), &u); err != nil {
			t.Fatal(err)
		}
		if got := u.neutral(); got != want {
			t.Errorf("%s: got %+v", in, got)
		}
	}
}

func TestOnlyData(t *testing.T) {
	t.Parallel()
	const in = ": c\n\nevent: e\r\ndata: 1\n\nid: 4\nretry: 5\n{\"error\":1}\ndata: last"
	const want = "\ndata: 1\n\n{\"error\":1}\ndata: last\n"
	got, err := io.ReadAll(iotest.OneByteReader(onlyData(io.NopCloser(strings.NewReader(in)))))
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"choices":[{"delta":{"content":"a","tool_calls":[{"index":-1}]}}],"usage":{"prompt_tokens":-1,"total_tokens":9}}`)
	f.Add(`{"error":{"code":502}}`)
	f.Add(`{"choices":[{"delta":{"reasoning_details":[null,{},{"type":"a","text":"x"},{"type":"a","text":5},{"type":"a","text":"y"},{"index":1e9},null]}}]}`)
	f.Add(`{"choices":[{"finish_reason":"stop"}]}`)
	f.Fuzz(func(t *testing.T, lines string) {
		_, call := wire.Config{}.Begin(context.Background())
		defer call.End()
		a := &answer{}
		for line := range strings.Lines(lines) {
			if err := a.add(call, []byte(line)); err != nil {
				var failure *llm.APIError
				if !errors.As(err, &failure) {
					t.Errorf("error %v (%T)", err, err)
				}
				return
			}
		}
		resp := a.response()
		if sent, err := encodeMessage(llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}); err != nil || len(sent) > 0 && !json.Valid(sent) {
			t.Errorf("sent back as %s, %v", sent, err)
		}
		if u := resp.Usage; min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens) < 0 {
			t.Errorf("negative usage %+v", u)
		}
	})
}
