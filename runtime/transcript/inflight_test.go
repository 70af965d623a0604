package transcript

import (
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestLastInFlight: the request that nobody heard the end of is found with what had
// arrived of its answer, and no other.
func TestLastInFlight(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	if open, err := LastInFlight(records.File(path)); open != nil || err != nil {
		t.Fatalf("without a file: %+v, %v", open, err)
	}
	w, err := Open(records.File(path), "a-1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	request := func(turn int) {
		do(w.Append(thread.EventCognitionRequest, CognitionRequest{Turn: turn, InputTokens: 70, MaxTokens: 9, Price: llm.Price{Input: 3}}))
	}
	want := func(delivered int64, usage llm.Usage) {
		t.Helper()
		open, err := LastInFlight(records.File(path))
		if err != nil || open == nil || open.Delivered != delivered || open.Usage != usage || open.InputTokens != 70 || open.Price.Input != 3 {
			t.Errorf("%+v, %v; want %d bytes, %+v", open, err, delivered, usage)
		}
	}
	none := func() {
		t.Helper()
		if open, err := LastInFlight(records.File(path)); open != nil || err != nil {
			t.Errorf("%+v, %v", open, err)
		}
	}
	do(w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "of an older version"}))
	do(w.Checkpoint(0))
	none()
	request(1)
	want(0, llm.Usage{})
	usage := llm.Usage{InputTokens: 4, Reported: true}
	do(w.Delta(1, llm.Delta{Usage: &usage}))
	do(w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "four"}))
	do(w.Delta(1, llm.Delta{Type: llm.ToolUseBlock, Text: "tool"}))
	do(w.Delta(1, llm.Delta{Type: llm.ToolUseBlock, Hidden: 10}))
	do(w.Append(thread.EventErrorClassified, ErrorClassified{Category: TornCategory})) // by the next to open it
	want(18, usage)
	do(w.Append(thread.EventErrorClassified, ErrorClassified{Category: "transient"}))
	none()
	request(1)
	want(0, llm.Usage{})
	do(w.Append(thread.EventCognitionOut, CognitionOut{Turn: 1}))
	none()
	request(2)
	if _, err := w.Finish(thread.Outcome{State: thread.Cancelled}, thread.Cost{}); err != nil {
		t.Fatal(err)
	}
	none()
}
