package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// StablePrefix plays a conversation with reasoning and tool calls and holds each
// request against the one before: tools, system prompt and all that was said are there
// again to the byte, but for the marks of caching, and nothing else was said before it.
// Vendors find a cached prefix, and take back signed reasoning, by exactly that.
func StablePrefix(t *testing.T, open func(wire.Config) llm.Client, protocol Protocol) {
	t.Helper()
	s := suite{open, protocol}
	b := s.start(t, `
turns:
  - match: {turn: 4}
    text: "Over."
  - reasoning: "Let me think about this: <a> & <b>."
    text: "I look."
    tool_calls: [{name: look, input: {at: "a", b: [1, 2], z: "ä"}}, {name: look, input_json: '{"x": '}]
    usage: {input_tokens: 10, output_tokens: 20, cache_read_tokens: 3000, cache_write_tokens: 400}
`)
	req := ask("hi")
	req.CacheKey = "chain"
	for turn := range 4 {
		resp, _ := b.stream(t, req)
		req.MaxTokens-- // the rest of a budget goes down
		if turn < 3 {
			req.Messages = append(slices.Clone(req.Messages), llm.Message{Role: llm.Assistant, Blocks: resp.Blocks},
				results(resp, fmt.Sprintf("seen %d", turn), "bad"))
		}
	}
	var before [][]byte
	for turn, sent := range b.server.Requests() {
		now := prefixOf(t, protocol, sent.Body)
		if len(now) <= len(before) || !slices.EqualFunc(before, now[:len(before)], bytes.Equal) {
			t.Errorf("turn %d does not begin as the one before:\n%s\n%s", turn, bytes.Join(before, []byte("\n")), bytes.Join(now, []byte("\n")))
		}
		before = now
		checkMarks(t, protocol, sent.Body)
	}
}

// prefixOf are the parts of a request in the order in which a vendor reads them.
func prefixOf(t *testing.T, protocol Protocol, body []byte) [][]byte {
	t.Helper()
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	list, system := "messages", "system"
	if protocol == Responses {
		list, system = "input", "instructions"
	}
	var said []json.RawMessage
	if err := json.Unmarshal(sent[list], &said); err != nil {
		t.Fatal(err)
	}
	parts := [][]byte{sent["tools"], sent[system]}
	for _, message := range said {
		parts = append(parts, bytes.ReplaceAll(message, []byte(`,"cache_control":{"type":"ephemeral"}`), nil))
	}
	return parts
}

// checkMarks: Anthropic takes four marks at most, and Responses is told which requests
// belong together.
func checkMarks(t *testing.T, protocol Protocol, body []byte) {
	t.Helper()
	marks := bytes.Count(body, []byte(`"cache_control":{"type":"ephemeral"}`))
	if protocol == Anthropic && (marks < 3 || marks > 4) || protocol != Anthropic && marks > 0 {
		t.Errorf("%d marks in %s", marks, body)
	}
	if keyed := bytes.Contains(body, []byte(`"prompt_cache_key":"chain"`)); keyed != (protocol == Responses) {
		t.Errorf("prompt_cache_key: %t", keyed)
	}
}
