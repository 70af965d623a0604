package llmtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func (s suite) text(t *testing.T) {
	b := s.start(t, `
turns:
  - match: {first: "hi", turn: 1, system: "brief", model: test-model, tool: look}
    text: "Hello there, this is a text of several pieces – with an umlaut: ä."
`)
	resp, deltas := b.stream(t, ask("hi"))
	const want = "Hello there, this is a text of several pieces – with an umlaut: ä."
	if len(resp.Blocks) != 1 || resp.Blocks[0].Type != llm.TextBlock || resp.Blocks[0].Text != want {
		t.Errorf("blocks = %+v", resp.Blocks)
	}
	if got := said(deltas, llm.TextBlock); got != want || len(deltas) < 2 {
		t.Errorf("streamed %q in %d pieces", got, len(deltas))
	}
	if resp.StopReason != llm.StopEnd || resp.Model != "test-model" || !resp.Usage.Reported {
		t.Errorf("response = %+v", resp)
	}
}

func (s suite) reasoning(t *testing.T) {
	b := s.start(t, `
turns:
  - match: {turn: 1}
    reasoning: "Let me think about this for a while."
    text: "Done."
    tool_calls: [{name: look, input: {at: "it"}}]
  - match: {turn: 2}
    text: "Over."
`)
	req := ask("hi")
	resp, deltas := b.stream(t, req)
	if got := said(deltas, llm.ReasoningBlock); got != "Let me think about this for a while." {
		t.Errorf("streamed reasoning %q", got)
	}
	if len(resp.Blocks) != 3 || resp.Blocks[0].Type != llm.ReasoningBlock {
		t.Fatalf("blocks = %+v", resp.Blocks)
	}
	if (s.protocol == OpenAI) != (resp.Blocks[0].Signature == "") {
		t.Errorf("signature = %q", resp.Blocks[0].Signature)
	}
	// Reasoning goes back unchanged.
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, results(resp, "seen"))
	b.stream(t, req)
	body := string(b.server.Requests()[1].Body)
	if !strings.Contains(body, "Let me think about this for a while.") || !strings.Contains(body, resp.Blocks[0].Signature) {
		t.Errorf("the reasoning is not in %s", body)
	}
}

func (s suite) tools(t *testing.T) {
	b := s.start(t, `
turns:
  - text: "I look."
    tool_calls:
      - {name: look, input: {at: "the first thing, which is long enough for pieces", deep: [1, {x: null}]}}
      - {name: look, input: {at: "the second"}}
      - {name: look}
`)
	resp, deltas := b.stream(t, ask("hi"))
	if resp.StopReason != llm.StopToolUse || len(resp.Blocks) != 4 {
		t.Fatalf("response = %+v", resp)
	}
	if got := said(deltas, llm.ToolUseBlock); got != "looklooklook" {
		t.Errorf("announced calls %q", got)
	}
	seen := map[string]bool{}
	for i, want := range []string{
		`{"at":"the first thing, which is long enough for pieces","deep":[1,{"x":null}]}`, `{"at":"the second"}`, `{}`,
	} {
		call := resp.Blocks[i+1]
		if call.Type != llm.ToolUseBlock || call.ToolName != "look" || string(call.Input) != want {
			t.Errorf("call %d = %+v, input %s", i, call, call.Input)
		}
		if call.ToolCallID == "" || seen[call.ToolCallID] {
			t.Errorf("call %d has id %q", i, call.ToolCallID)
		}
		seen[call.ToolCallID] = true
	}
}

func (s suite) toolResults(t *testing.T) {
	b := s.start(t, `
turns:
  - match: {turn: 1}
    tool_calls: [{name: look, input: {at: "a"}}, {name: look, input: {at: "b"}}]
  - match: {turn: 2, last_regex: "thread_id"}
    text: "{{ (result 0).thread_id }} and {{ results \"thread_id\" | toJSON }} of {{ first \"h(.)\" }}"
`)
	req := ask("hi")
	resp, _ := b.stream(t, req)
	back := results(resp, `{"thread_id":"one"}`, `{"deep":[{"thread_id":"two"}]}`)
	back.Blocks[1].IsError = true
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, back)
	resp, _ = b.stream(t, req)
	if want := `one and ["one","two"] of i`; resp.Blocks[0].Text != want {
		t.Errorf("text = %q, want %q", resp.Blocks[0].Text, want)
	}
	body := string(b.server.Requests()[1].Body)
	if s.protocol == Anthropic && strings.Count(body, `"is_error":true`) != 1 {
		t.Errorf("the failed result is not marked in %s", body)
	}
	if s.protocol != Anthropic && strings.Count(body, `":"Error: `) != 1 {
		t.Errorf("the failed result is not marked in %s", body)
	}
}

// results is the user message with the results of an answer's calls.
func results(resp llm.Response, texts ...string) llm.Message {
	out := llm.Message{Role: llm.User}
	for _, block := range resp.Blocks {
		if block.Type == llm.ToolUseBlock {
			out.Blocks = append(out.Blocks, llm.Block{
				Type: llm.ToolResultBlock, ToolCallID: block.ToolCallID, Text: texts[len(out.Blocks)],
			})
		}
	}
	return out
}

func (s suite) invalidInput(t *testing.T) {
	b := s.start(t, `
turns:
  - match: {turn: 1}
    tool_calls:
      - {name: look, input_json: '{"at": "unfinished'}
      - {name: look, input_json: '["not an object"]'}
  - match: {turn: 2}
    text: "sorry"
`)
	req := ask("hi")
	resp, _ := b.stream(t, req)
	if len(resp.Blocks) != 2 || string(resp.Blocks[0].Input) != `{"at": "unfinished` || string(resp.Blocks[1].Input) != `["not an object"]` {
		t.Fatalf("blocks = %+v", resp.Blocks)
	}
	// The conversation goes on although the input is no object.
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, results(resp, "bad", "bad"))
	if resp, _ := b.stream(t, req); resp.Blocks[0].Text != "sorry" {
		t.Errorf("blocks = %+v", resp.Blocks)
	}
	if body := b.server.Requests()[1].Body; !json.Valid(body) || strings.Count(string(body), "invalid_json") != 2 {
		t.Errorf("sent %s", body)
	}
}

// madeUpCalls: calls of tools that were never offered, in names and texts that no vendor
// takes back, do not end the conversation. Every request is looked at, see [Accepted].
func (s suite) madeUpCalls(t *testing.T) {
	b := s.start(t, `
turns:
  - match: {turn: 1}
    tool_calls:
      - {name: multi_tool_use.parallel, input: {tool_uses: []}}
      - {name: "a tool/with a very long name that somebody has made up, `+strings.Repeat("and on ", 20)+`", input_json: '{"at": "half \ud83d"}'}
  - match: {turn: 2}
    text: "sorry"
`)
	req := ask("hi")
	resp, _ := b.stream(t, req)
	if len(resp.Blocks) != 2 || resp.Blocks[0].ToolName != "multi_tool_use.parallel" {
		t.Fatalf("blocks = %+v", resp.Blocks)
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, results(resp, "there is none", "there is none"))
	if resp, _ = b.stream(t, req); resp.Blocks[0].Text != "sorry" {
		t.Errorf("blocks = %+v", resp.Blocks)
	}
	if body := string(b.server.Requests()[1].Body); !strings.Contains(body, `"name":"multi_tool_use_parallel"`) {
		t.Errorf("sent %s", body)
	}
}

func (s suite) usage(t *testing.T) {
	b := s.start(t, `
turns:
  - text: "x"
    usage: {input_tokens: 10, output_tokens: 20, cache_read_tokens: 3000, cache_write_tokens: 400}
`)
	resp, _ := b.stream(t, ask("hi"))
	want := llm.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 3000, CacheWriteTokens: 400, Reported: true}
	if resp.Usage != want {
		t.Errorf("usage = %+v, want %+v", resp.Usage, want)
	}
}

func (s suite) stopReasons(t *testing.T) {
	for _, want := range []llm.StopReason{llm.StopEnd, llm.StopMaxTokens, llm.StopRefusal, llm.StopFailed, llm.StopOther} {
		b := s.start(t, "turns: [{text: x, stop_reason: "+string(want)+"}]")
		resp, _ := b.stream(t, ask("hi"))
		if resp.StopReason != want {
			t.Errorf("stop reason %q, want %q", resp.StopReason, want)
		}
		if (want == llm.StopOther || want == llm.StopFailed) && resp.StopWord == "" {
			t.Error("the vendor's word is lost")
		}
	}
}

func (s suite) nothingEmpty(t *testing.T) {
	b := s.start(t, "turns: [{text: x}]")
	req := ask("hi")
	req.System = " "
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
			{Type: llm.TextBlock, Text: ""}, {Type: llm.TextBlock, Text: " \n"},
			{Type: llm.ToolUseBlock, ToolCallID: "c1", ToolName: "look"},
		}},
		llm.Message{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "c1"}}},
		llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.TextBlock}}},
		llm.Text(llm.User, "go on"),
	)
	b.stream(t, req)
	body := string(b.server.Requests()[0].Body)
	for _, empty := range []string{`"text":""`, `"text":" `, `"content":""`, `"content":[]`, `"system":`, `"role":"system"`} {
		if strings.Contains(body, empty) {
			t.Errorf("%s in %s", empty, body)
		}
	}
}
