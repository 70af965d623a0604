package limit

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func TestContextShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window           int
		tokens, newBytes int64
		full             bool // more than three quarters
	}{
		{window: 1000, tokens: 0, newBytes: 0},
		{window: 1000, tokens: 111, full: true}, // what the provider adds counts as well
		{window: 1000, newBytes: 440},
		{window: 1000, newBytes: 448, full: true},
		{window: 0, tokens: 149_360},
		{window: 0, tokens: 149_361, full: true},
	} {
		if got := ContextShare(llm.Model{ContextWindow: c.window}, c.tokens, c.newBytes); got > 0.75 != c.full {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
