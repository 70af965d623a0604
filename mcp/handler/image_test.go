package handler

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"testing"
)

// An image that a tool reads is content of its own, beside the text about it.
func TestImageContent(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 5))); err != nil {
		t.Fatal(err)
	}
	c := connect(t, newFiles("shot.png", picture.String()))
	raw, failed := c.Request("tools/call", map[string]any{
		"name":      "rye_execute",
		"arguments": map[string]any{"item_id": "rye/file-system/read", "parameters": map[string]any{"path": "shot.png"}},
	})
	if failed != nil {
		t.Fatal(failed)
	}
	var got struct {
		Content []struct {
			Type     string
			Text     string
			Data     []byte
			MIMEType string `json:"mimeType"`
		}
		StructuredContent struct {
			Data map[string]any
		}
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Content) != 2 || got.Content[0].Type != "text" || got.Content[1].Type != "image" ||
		got.Content[1].MIMEType != "image/png" || !bytes.Equal(got.Content[1].Data, picture.Bytes()) {
		t.Fatalf("got %s", raw)
	}
	if d := got.StructuredContent.Data; d["width"] != 8.0 || d["height"] != 5.0 || d["media_type"] != "image/png" {
		t.Errorf("about it: %v", d)
	}
}
