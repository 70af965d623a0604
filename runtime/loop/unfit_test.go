package loop

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/picture"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestUnfitImages: an image that providers refuse would end the thread and every resume of
// it. It is kept, and the model is told why it does not see it.
func TestUnfitImages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	shot := string(drawn(t, 23))
	images := []struct{ name, mediaType, data, says, sent string }{
		{"favicon.ico", "image/x-icon", "\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00", "10 bytes, image/x-icon; not text, kept as artifact ", ""},
		{"logo.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml; the whole is artifact ", ""},
		{"head.png", "image/png", shot[:len(shot)-9], "image/png; not shown, for it is a damaged image (image/png): unexpected EOF; not text, kept as artifact ", ""},
		{"heavy.png", "image/png", shot + strings.Repeat("\x00", picture.MaxBytes), " bytes can be shown; not text, kept as artifact ", ""},
		{"misnamed", "image/jpg", shot, "image/png; shown to you]", "image/png"},
		{"untyped", "application/octet-stream", shot + "\n", "image/png; shown to you]", "image/png"},
	}
	var all []any
	for _, image := range images {
		all = append(all, seenResult{true, []tool.Attachment{{Name: image.name, MediaType: image.mediaType, Data: []byte(image.data)}}})
	}
	h.tools.more = []tool.Tool{gives("look", all...)}
	h.script("turns:\n" + strings.Repeat("  - {times: 1, tool_calls: [{name: test_look}]}\n", len(all)) + "  - {text: done}\n")
	rec := h.run(job{})
	results := h.results(rec.ThreadID)
	if rec.Status != thread.Completed || len(results) != len(images) {
		t.Fatalf("%d results, %+v", len(results), rec.Outcome)
	}
	for i, image := range images {
		got, sent := results[i], ""
		if len(got.Images) > 0 {
			sent = got.Images[0].MediaType
		}
		if !strings.Contains(got.Text, image.says) || sent != image.sent {
			t.Errorf("%s: sent %q, told %.400s", image.name, sent, got.Text)
		}
	}
	if kept := h.artifacts(rec.ThreadID); len(kept) != len(images) {
		t.Errorf("%d are kept", len(kept))
	}
}
