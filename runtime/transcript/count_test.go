package transcript

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
)

// TestRebuildCounts: the last count of a provider is of the messages up to its answer,
// also in the part of a transcript that ends before, and where a thread has none of its
// own it is the one that it was given.
func TestRebuildCounts(t *testing.T) {
	t.Parallel()
	seeded := []llm.Message{llm.Text(llm.User, "do it"), llm.Text(llm.Assistant, "I do")}
	before := Count{Tokens: 900, Messages: 1, Model: "a/first"}
	answers := func(turn int, u llm.Usage) func(*testing.T, *Writer) {
		return func(t *testing.T, w *Writer) {
			must(t, w.Append(thread.EventCognitionIn, CognitionIn{Role: llm.User, Blocks: llm.Text(llm.User, "on").Blocks}))
			must(t, w.Append(thread.EventCognitionRequest, CognitionRequest{Turn: turn, Model: "a/second"}))
			must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: turn, Blocks: Blocks{{Type: llm.TextBlock, Text: "ok"}}, Usage: u}))
		}
	}
	counted := llm.Usage{InputTokens: 1000, CacheReadTokens: 500, OutputTokens: 20, Reported: true}
	first := Count{Tokens: 1520, Messages: 4, Model: "a/second"}
	for name, tt := range map[string]struct {
		given *Count
		turns []llm.Usage
		until Until
		want  Count
	}{
		"nothing":                      {},
		"what it was given":            {given: &before, want: before},
		"its own goes first":           {given: &before, turns: []llm.Usage{counted}, want: first},
		"nothing is reported":          {given: &before, turns: []llm.Usage{{InputTokens: 7}}, want: before},
		"the last that was reported":   {turns: []llm.Usage{counted, {}}, want: first},
		"up to a turn":                 {turns: []llm.Usage{counted, {InputTokens: 9000, Reported: true}}, until: Until{Turn: 1}, want: first},
		"of more messages than it has": {given: &Count{Tokens: 900, Messages: 3}},
		"less than nothing":            {given: &Count{Tokens: -1, Messages: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			w := open(t, path, nil)
			must(t, w.Seed(ThreadContinued{PreviousThreadID: "test/demo-1", Via: thread.ViaResume, Counted: tt.given}, seeded))
			for i, u := range tt.turns {
				answers(i+1, u)(t, w)
			}
			must(t, w.Close())
			said, got, err := Rebuild(records.File(path), artifact.Folder(t.TempDir()), tt.until)
			must(t, err)
			if got != tt.want || len(said) < len(seeded) {
				t.Errorf("%+v of %d messages, want %+v", got, len(said), tt.want)
			}
			if given := CountedBefore(records.File(path)); (given == nil) != (tt.given == nil) || given != nil && *given != *tt.given {
				t.Errorf("it was given %+v, want %+v", given, tt.given)
			}
		})
	}
}
