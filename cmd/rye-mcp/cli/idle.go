package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// idle tells a person who waits of threads that nothing goes on in, because their process is
// suspended or no worker takes them: each when that is seen twice, a second apart, and again
// when it went on meanwhile.
type idle struct {
	tell func(text string)
	seen map[thread.ID]int // in how many looks in a row
}

// untilEnd asks to wait for a thread until it has ended.
func untilEnd(sys System, id thread.ID) control.WaitRequest {
	stuck := idle{tell: func(text string) { _, _ = io.WriteString(sys.Stderr, text) }}
	return control.WaitRequest{ThreadIDs: []thread.ID{id}, Timeout: forever, Progress: stuck.look}
}

func (s *idle) look(now control.Progress) {
	warnings := make(map[thread.ID]string, len(now.Suspended)+len(now.NoWorker))
	for id, pid := range now.Suspended {
		warnings[id] = fmt.Sprintf("Warning: thread %s does nothing, because its process is suspended\nTry:   kill -CONT %d; rye-mcp threads kill %s ends it\n", id, pid, id)
	}
	for id, why := range now.NoWorker {
		warnings[id] = fmt.Sprintf("Warning: thread %s is queued: %s\nTry:   rye-mcp workers list; rye-mcp threads cancel %s takes it out of the queue\n", id, plain.Line(why), id)
	}
	seen := make(map[thread.ID]int, len(warnings))
	for _, id := range slices.Sorted(maps.Keys(warnings)) {
		if seen[id] = s.seen[id] + 1; seen[id] == 2 {
			s.tell(warnings[id])
		}
	}
	s.seen = seen
}
