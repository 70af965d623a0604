package anthropic

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/llmtest"
	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
)

// TestBurst takes an answer in 40 000 small pieces. The memory that is allocated follows
// its length, and not the square of it. The test is not parallel: it counts what is allocated.
func TestBurst(t *testing.T) { //nolint:paralleltest // see above
	const pieces, piece = 40_000, "word "
	a := answer{sink: func(llm.Delta) {}}
	if err := a.start(0, part{kind: "text"}, ""); err != nil {
		t.Fatal(err)
	}
	var text string
	took := alloctest.Bytes(func() {
		for range pieces {
			a.text(&a.blocks[0], piece)
		}
		text = a.response().Blocks[0].Text
	})
	if len(text) != pieces*len(piece) {
		t.Errorf("%d bytes of text", len(text))
	}
	if took > 20*pieces*uint64(len(piece)) {
		t.Errorf("allocated %d bytes for %d", took, len(text))
	}
}

// TestAttackHugeEvents: a provider sends events of megabytes whose values the vendor's library would decode to gigabytes.
// An event with more values than any answer has is refused before it is decoded.
func TestAttackHugeEvents(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	llmtest.HugeEvents(t, New, "event: message_start\ndata: "+`{"type":"message_start","message":{"model":"m","content":`, "}}")
}
