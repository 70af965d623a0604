package loop

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// TestWarningsOfTools: what the tools of a thread have met is among the warnings of its end.
func TestWarningsOfTools(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_act}]}\n  - {text: done}\n")
	d := h.deps(h.register(job{}))
	d.Warnings = func() []string { return []string{"the index is damaged"} }
	rec, err := Run(t.Context(), d)
	if err != nil || rec.Status != thread.Completed || !slices.Equal(rec.Outcome.Warnings, []string{"the index is damaged"}) {
		t.Errorf("%s, %+v, %v", rec.Status, rec.Outcome, err)
	}
}

// TestTurnEnded: whoever follows the turns of a thread is told of each that has another
// behind it, when what was said in it can be read; the last one is told by the row.
func TestTurnEnded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_act}, {name: test_act}]}\n" +
		"  - {match: {turn: 2}, tool_calls: [{name: test_act}]}\n  - {text: done}\n")
	id := h.register(job{})
	d := h.deps(id)
	var told []string
	d.TurnEnded = func() {
		told = append(told, fmt.Sprintf("%d answers, %d results", len(events[transcript.CognitionOut](h, id, thread.EventCognitionOut)), len(h.results(id))))
	}
	rec, err := Run(t.Context(), d)
	if err != nil || rec.Status != thread.Completed {
		t.Fatalf("%s, %v", rec.Status, err)
	}
	if want := []string{"1 answers, 2 results", "2 answers, 3 results"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
