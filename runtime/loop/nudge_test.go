package loop

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestNudge: only what is missing is asked for again, unless the settings want
// every idle first turn nudged.
func TestNudge(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const direct = "turns:\n  - {match: {turn: 1}, text: hello}\n  - {match: {turn: 2, last: without calling a tool}, text: really done}\n"
	for name, c := range map[string]struct {
		nudge, script, outputs string
		turns                  int
		result                 string
	}{
		"a direct answer":             {config.NudgeMissing, direct, "", 1, "hello"},
		"a direct answer, first turn": {config.NudgeFirstTurn, direct, "", 2, "really done"},
		"outputs are missing":         {config.NudgeMissing, "turns:\n  - {text: hello}\n", pathOutput, 3, "hello"},
	} {
		h := newHouse(t)
		h.settings.Nudge = c.nudge
		h.script(c.script)
		rec := h.run(job{outputs: c.outputs})
		if rec.Status != thread.Completed || rec.Cost.Turns != c.turns || rec.Outcome.Result != c.result {
			t.Errorf("%s: %s after %d turns, %+v", name, rec.Status, rec.Cost.Turns, rec.Outcome)
		}
	}
}

// TestFiftyDirectAnswers: fifty threads that answer at once cost fifty calls.
func TestFiftyDirectAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.settings.Nudge = config.NudgeMissing
	h.script(doneScript)
	for range 50 {
		if rec := h.run(job{}); rec.Status != thread.Completed || rec.Cost.Turns != 1 {
			t.Fatalf("%s after %d turns: %+v", rec.Status, rec.Cost.Turns, rec.Outcome)
		}
	}
	if n := len(h.server.Requests()); n != 50 {
		t.Errorf("%d calls", n)
	}
}
