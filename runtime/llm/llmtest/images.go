package llmtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// images go out with the results they belong to and with what a user says, and
// come in whole.
func (s suite) images(t *testing.T) {
	b := s.start(t, `
turns:
  - match: {turn: 1, first: "[image/png of 3 bytes]"}
    tool_calls: [{name: look, input: {at: "a"}}, {name: look, input: {at: "b"}}]
  - match: {turn: 2}
    text: "seen"
`)
	req := ask("look at this")
	req.Messages[0].Blocks = append(req.Messages[0].Blocks, llm.Block{
		Type: llm.ImageBlock, Images: []llm.Image{{MediaType: "image/png", Data: []byte("abc")}},
	})
	resp, _ := b.stream(t, req)
	back := results(resp, "two images", "none")
	back.Blocks[0].Images = []llm.Image{{MediaType: "image/jpeg", Data: []byte("12345")}, {MediaType: "image/webp", Data: []byte("1234567")}}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, back)
	if resp, _ = b.stream(t, req); len(resp.Blocks) != 1 || resp.Blocks[0].Text != "seen" {
		t.Fatalf("blocks = %+v", resp.Blocks)
	}
	sent := b.server.Requests()[1]
	for _, want := range []string{"two images", "none", "[image/jpeg of 5 bytes]", "[image/webp of 7 bytes]"} {
		if !strings.Contains(sent.Last, want) {
			t.Errorf("%q is not in %q", want, sent.Last)
		}
	}
	body := string(sent.Body)
	want := `"source":{"data":"MTIzNDU=","media_type":"image/jpeg","type":"base64"}`
	if s.protocol == Responses {
		want = `"image_url":"data:image/jpeg;base64,MTIzNDU="`
	}
	if s.protocol == OpenAI {
		want = `"image_url":{"url":"data:image/jpeg;base64,MTIzNDU="}`
		// Tool messages hold text only and follow the calls directly.
		text := fmt.Sprintf(`{"type":"text","text":"Images of the result of call %s:"}`, back.Blocks[0].ToolCallID)
		if !strings.Contains(body, text) || strings.LastIndex(body, `"role":"tool"`) > strings.Index(body, "image/jpeg") {
			t.Errorf("images in another place: %s", body)
		}
	}
	if !strings.Contains(body, want) {
		t.Errorf("%s is not in %s", want, body)
	}
}
