package llmtest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// images go out with the results they belong to and with what a user says, and
// come in whole.
func (s suite) images(t *testing.T) {
	asPNG, asJPEG, asWebP := []byte("\x89PNG\r\n\x1a\n"), []byte("\xff\xd8\xff45"), []byte("RIFF\x00\x00\x00\x00WEBPVP8 ")
	b := s.start(t, `
turns:
  - match: {turn: 1, first: "[image/png of 8 bytes]"}
    tool_calls: [{name: look, input: {at: "a"}}, {name: look, input: {at: "b"}}]
  - match: {turn: 2}
    text: "seen"
`)
	req := ask("look at this")
	req.Messages[0].Blocks = append(req.Messages[0].Blocks, llm.Block{
		Type: llm.ImageBlock, Images: []llm.Image{{MediaType: "image/png", Data: asPNG}},
	})
	resp, _ := b.stream(t, req)
	back := results(resp, "two images", "none")
	back.Blocks[0].Images = []llm.Image{{MediaType: "image/jpeg", Data: asJPEG}, {MediaType: "image/webp", Data: asWebP}}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, back)
	if resp, _ = b.stream(t, req); len(resp.Blocks) != 1 || resp.Blocks[0].Text != "seen" {
		t.Fatalf("blocks = %+v", resp.Blocks)
	}
	sent := b.server.Requests()[1]
	for _, want := range []string{"two images", "none", "[image/jpeg of 5 bytes]", "[image/webp of 16 bytes]"} {
		if !strings.Contains(sent.Last, want) {
			t.Errorf("%q is not in %q", want, sent.Last)
		}
	}
	body := string(sent.Body)
	encoded := base64.StdEncoding.EncodeToString(asJPEG)
	want := `"source":{"data":"` + encoded + `","media_type":"image/jpeg","type":"base64"}`
	if s.protocol == Responses {
		want = `"image_url":"data:image/jpeg;base64,` + encoded + `"`
	}
	if s.protocol == OpenAI {
		want = `"image_url":{"url":"data:image/jpeg;base64,` + encoded + `"}`
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

// failedImages: the images of a failed result are sent, and where a vendor takes them.
func (s suite) failedImages(t *testing.T) {
	b := s.start(t, `
turns:
  - match: {turn: 1}
    tool_calls: [{name: look, input: {at: "a"}}]
  - text: "seen"
`)
	req := ask("look at this")
	resp, _ := b.stream(t, req)
	back := results(resp, "it broke")
	back.Blocks[0].IsError, back.Blocks[0].Images = true, []llm.Image{{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks}, back)
	b.stream(t, req)
	if sent := b.server.Requests()[1].Last; !strings.Contains(sent, "it broke") || !strings.Contains(sent, "[image/png of 8 bytes]") {
		t.Errorf("sent %q", sent)
	}
}
