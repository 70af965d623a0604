package cli

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestTellsIdle: a thread that is suspended, or that no worker takes, is told of once, when
// that is seen again, and anew when it went on in between.
func TestTellsIdle(t *testing.T) {
	t.Parallel()
	var told []string
	s := idle{tell: func(text string) { told = append(told, text) }}
	now := control.Progress{
		Suspended: map[thread.ID]int{"a-1": 7, "b-2": 8}, NoWorker: map[thread.ID]string{"c-3": "no worker takes threads of project p"},
	}
	for i, want := range []int{0, 3, 3} {
		if s.look(now); len(told) != want {
			t.Errorf("look %d: told %q", i, told)
		}
	}
	if !strings.Contains(told[0], "thread a-1") || !strings.Contains(told[0], "kill -CONT 7") || !strings.Contains(told[1], "threads kill b-2") {
		t.Errorf("told %q", told)
	}
	if want := "Warning: thread c-3 is queued: no worker takes threads of project p\nTry:   rye-mcp workers list; rye-mcp threads cancel c-3 "; !strings.HasPrefix(told[2], want) {
		t.Errorf("told %q", told[2])
	}
	s.look(control.Progress{Suspended: map[thread.ID]int{"b-2": 8}})
	s.look(now)
	if s.look(now); len(told) != 5 || !strings.Contains(told[3], "a-1") || !strings.Contains(told[4], "c-3") {
		t.Errorf("after a-1 and c-3 went on: %q", told)
	}
}
