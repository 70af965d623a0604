package server

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestSortAttachments: a client is given images that its model can be shown, under the
// type that they have, and told of all others.
func TestSortAttachments(t *testing.T) {
	t.Parallel()
	var shot bytes.Buffer
	if err := png.Encode(&shot, image.NewGray(image.Rect(0, 0, 20, 10))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mediaType string
		data      []byte
		shown     string
		notShown  string
	}{
		"PNG":      {"image/png", shot.Bytes(), "image/png", ""},
		"misnamed": {"image/jpg", shot.Bytes(), "image/png", ""},
		"icon":     {"image/x-icon", []byte("\x00\x00\x01\x00"), "", ""},
		"SVG":      {"image/svg+xml", []byte("<svg/>"), "", ""},
		"damaged":  {"image/png", shot.Bytes()[:shot.Len()-8], "", "it is a damaged image (image/png): unexpected EOF"},
	} {
		pictures, others := sortAttachments([]tool.Attachment{{Name: "a", MediaType: c.mediaType, Data: c.data}})
		if len(pictures)+len(others) != 1 {
			t.Fatalf("%s: %d shown, %d named", name, len(pictures), len(others))
		}
		if len(others) == 1 {
			if c.shown != "" || others[0].MediaType != c.mediaType || others[0].NotShown != c.notShown || others[0].Bytes != len(c.data) {
				t.Errorf("%s: %+v", name, others[0])
			}
			continue
		}
		if got, ok := pictures[0].(mcp.ImageContent); !ok || got.MIMEType != c.shown {
			t.Errorf("%s: %+v", name, pictures[0])
		}
	}
}
