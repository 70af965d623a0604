package cli

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// What a thread is resumed with whose limit has ended it is more than it has needed.
func TestRaisedLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ code, value, most, want string }{
		{limit.TokensExceeded, "2379", "2048", "tokens=4758"},
		{limit.TurnsExceeded, "5", "5", "turns=10"},
		{limit.SpendExceeded, "$0.0200", "$0.05", "spend=0.1"},
		{limit.DurationExceeded, "30s", "30s", "duration_seconds=60"},
		{"model_refused", "1", "2", ""},
	} {
		over := thread.LimitError{Code: c.code, Value: c.value, Max: c.most}
		if got := raisedLimit(&thread.Problem{Code: c.code, Message: over.Error()}); got != c.want {
			t.Errorf("%s: got %q, want %q", over.Error(), got, c.want)
		}
	}
	if got := raisedLimit(nil); got != "" {
		t.Errorf("got %q", got)
	}
}
