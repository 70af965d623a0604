package limit

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func TestContextShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window           int
		tokens, newChars int64
		full             bool // more than three quarters
	}{
		{window: 1000, tokens: 0, newChars: 0},
		{window: 1000, tokens: 750},
		{window: 1000, tokens: 751, full: true},
		{window: 1000, newChars: 3003},
		{window: 1000, newChars: 3004, full: true},
		{window: 1000, tokens: 700, newChars: 203},
		{window: 1000, tokens: 700, newChars: 204, full: true},
		{window: 0, tokens: 150_000},
		{window: 0, tokens: 150_001, full: true},
	} {
		if got := ContextShare(llm.Model{ContextWindow: c.window}, c.tokens, c.newChars); got > 0.75 != c.full {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
