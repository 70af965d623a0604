package lenient_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// looked is a conversation in which a tool has returned an image.
func looked() []llm.Message {
	messages := talk("")
	messages[0].Blocks = append(messages[0].Blocks, llm.Block{Type: llm.ImageBlock, Images: []llm.Image{{MediaType: "image/png", Data: []byte("first")}}})
	messages[2].Blocks[0].Images = []llm.Image{{MediaType: "image/x-icon", Data: []byte("icon")}}
	return messages
}

// TestRefusedImages: a conversation with an image that the vendor cannot read goes on
// without it, and the model is told.
func TestRefusedImages(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"Anthropic":        "messages.2.content.0.tool_result.content.1.image.source.base64.media_type: Input should be 'image/jpeg'",
		"Responses":        "The image data you provided does not represent a valid image.",
		"Chat Completions": "Invalid image data: Could not process image",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vendors()[name]
			sent := "data:image/x-icon"
			if name == "Anthropic" {
				sent = `"media_type":"image/x-icon"`
			}
			v.refuses = map[string]string{sent: words}
			client, bodies := v.serve(t)
			req := llm.Request{Model: "m", MaxTokens: 9, Messages: looked()}
			resp, err := client.Stream(t.Context(), req, nil)
			if err != nil || len(resp.Warnings) != 1 || !strings.Contains(resp.Warnings[0], "goes on without the images so far") {
				t.Fatalf("got %+v, %v", resp, err)
			}
			if sent := bodies()[1]; strings.Contains(sent, "aWNvbg==") || !strings.Contains(sent, "seen\\n[image/x-icon of 4 bytes, which your provider refused") {
				t.Errorf("sent %s", sent)
			}
			later := looked()
			later[2].Blocks[0].Images[0].MediaType = "image/png"
			req.Messages = append(slices.Clone(req.Messages), later[1:]...)
			if resp, err = client.Stream(t.Context(), req, nil); err != nil || len(resp.Warnings) > 0 || len(bodies()) != 3 {
				t.Fatalf("later: got %+v, %v after %d requests", resp, err, len(bodies()))
			}
			if sent := bodies()[2]; strings.Count(sent, "aWNvbg==") != 1 {
				t.Errorf("a later image is not sent: %s", sent)
			}
		})
	}
}

// TestRefusedAgain: what a vendor refuses a second time it never takes: it is left out of
// all that follows, and costs no further request.
func TestRefusedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has, says string
		status    int
	}{
		"Groq":     {has: `"reasoning_content"`, says: "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]"},
		"Cerebras": {has: `"reasoning_content"`, says: "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported"},
		"Mistral":  {has: `"reasoning_content"`, says: "Extra inputs are not permitted: body.messages.1.assistant.reasoning_content", status: http.StatusUnprocessableEntity},
		"blind":    {has: `"image_url"`, says: "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`", status: http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vendors()["Chat Completions"]
			v.refuses, v.status = map[string]string{c.has: c.says}, c.status
			client, bodies := v.serve(t)
			req := llm.Request{Model: "m", MaxTokens: 9, Messages: looked()}
			for turn, want := range []int{2, 4, 5, 6} {
				if _, err := client.Stream(t.Context(), req, nil); err != nil {
					t.Fatalf("turn %d: %v", turn+1, err)
				}
				if len(bodies()) != want {
					t.Errorf("turn %d: %d requests, want %d", turn+1, len(bodies()), want)
				}
				req.Messages = append(slices.Clone(req.Messages), looked()[1:]...)
			}
		})
	}
}

// TestImagesAndThoughts: what was given up first stays away when more is given up.
func TestImagesAndThoughts(t *testing.T) {
	t.Parallel()
	v := vendors()["Chat Completions"]
	v.refuses = map[string]string{`"reasoning_content"`: "property 'reasoning_content' is unsupported"}
	client, bodies := v.serve(t)
	req := llm.Request{Model: "m", MaxTokens: 9, Messages: looked()}
	if _, err := client.Stream(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	v.refuses[`"image_url"`] = "Could not process image"
	resp, err := client.Stream(t.Context(), req, nil)
	if err != nil || len(resp.Warnings) != 1 || len(bodies()) != 4 {
		t.Fatalf("got %+v, %v after %d requests", resp, err, len(bodies()))
	}
	if sent := bodies()[3]; strings.Contains(sent, "reasoning_content") || strings.Contains(sent, "image_url") || !strings.Contains(sent, "[image/png of 5 bytes") {
		t.Errorf("sent %s", sent)
	}
}
