package loop

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestCutInput: where a server on this machine counts far less than it was sent, the
// thread is warned, once.
func TestCutInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		local bool
		words int // sent, of five characters
		input int // tokens that are counted
		warns int
	}{
		"cut off":        {true, 20_000, 2050, 1},
		"whole":          {true, 20_000, 20_000, 0},
		"short":          {true, 20, 2, 0},
		"not our server": {false, 20_000, 2050, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			if c.local {
				h.provider = "\nlocal: true\nmodels: {small: {context_window: 200000}}\n"
			}
			usage := "usage: {input_tokens: " + strconv.Itoa(c.input) + ", output_tokens: 5}}\n"
			h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}], " + usage + "  - {text: done, " + usage)
			rec := h.run(job{inputs: map[string]any{"who": strings.Repeat("word ", c.words)}})
			told := 0
			for _, w := range rec.Outcome.Warnings {
				if strings.Contains(w, "OLLAMA_CONTEXT_LENGTH") && strings.Contains(w, "counted 2050 tokens") {
					told++
				}
			}
			if rec.Status != thread.Completed || told != c.warns {
				t.Errorf("%s, warnings %q", rec.Status, rec.Outcome.Warnings)
			}
		})
	}
}
