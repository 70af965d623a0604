package cli

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestTellsSuspended: a thread that is suspended is told of once, when it is seen
// again, and anew when it went on in between.
func TestTellsSuspended(t *testing.T) {
	t.Parallel()
	var told []string
	s := suspended{tell: func(text string) { told = append(told, text) }}
	now := map[thread.ID]int{"a-1": 7, "b-2": 8}
	for i, want := range []int{0, 2, 2} {
		if s.look(now); len(told) != want {
			t.Errorf("look %d: told %q", i, told)
		}
	}
	if !strings.Contains(told[0], "thread a-1") || !strings.Contains(told[0], "kill -CONT 7") || !strings.Contains(told[1], "threads kill b-2") {
		t.Errorf("told %q", told)
	}
	s.look(map[thread.ID]int{"b-2": 8})
	s.look(now)
	if s.look(now); len(told) != 3 || !strings.Contains(told[2], "a-1") {
		t.Errorf("after a-1 went on: %q", told)
	}
}
