package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestLongAnswerIsStreamedInPart: of an answer of two megabytes the beginning is
// written as it is streamed, and all of its length. The whole comes once, with its end.
func TestLongAnswerIsStreamedInPart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	w, err := Open(records.File(path), "a-1", Options{})
	must(t, err)
	const pieces, piece = 40_000, "fifty bytes of an answer that does not come to end"
	for range pieces {
		must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: piece}))
	}
	must(t, w.Close())
	info, err := os.Stat(path)
	must(t, err)
	if most := int64(maxStreamed * 3 / 2); info.Size() > most {
		t.Errorf("%d bytes are written, want at most %d", info.Size(), most)
	}
	var text, length int
	for e, err := range Events(records.File(path)) {
		must(t, err)
		d, err := Decode[TokenDelta](e)
		must(t, err)
		if e.Type != thread.EventTokenDelta || !strings.HasPrefix(strings.Repeat(piece, pieces)[text:], d.Text) {
			t.Fatalf("%s %q", e.Type, d.Text)
		}
		text += len(d.Text)
		length += len(d.Text) + d.Bytes
	}
	if length != pieces*len(piece) || text > maxStreamed || text < maxStreamed-len(piece) {
		t.Errorf("%d bytes of text, %d in all", text, length)
	}
}

// TestHiddenPartLeavesNoHalfSecret: where streaming becomes a mere count, the beginning
// of a secret is not written either.
func TestHiddenPartLeavesNoHalfSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	w, err := Open(records.File(path), "a-1", Options{Mask: halves{}})
	must(t, err)
	must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: strings.Repeat("x", maxStreamed-5) + "SECR"}))
	must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "ET and more"}))
	must(t, w.Close())
	content, err := os.ReadFile(path)
	must(t, err)
	if strings.Contains(string(content), "SECR") {
		t.Error("the beginning of the secret is written")
	}
}

// halves hides SECRET.
type halves struct{}

func (halves) MaskJSON(value []byte) []byte {
	return []byte(strings.ReplaceAll(string(value), "SECRET", "[hidden]"))
}

func (halves) Begun(text string) int {
	for n := len("SECRET") - 1; n > 0; n-- {
		if strings.HasSuffix(text, "SECRET"[:n]) {
			return n
		}
	}
	return 0
}
