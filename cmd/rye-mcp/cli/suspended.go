package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// suspended tells a person who waits of threads that do nothing, because their
// process is suspended: each when that is seen twice, a second apart, and again when
// it went on meanwhile.
type suspended struct {
	tell func(text string)
	seen map[thread.ID]int // in how many looks in a row
}

// untilEnd asks to wait for a thread until it has ended.
func untilEnd(sys System, id thread.ID) control.WaitRequest {
	stuck := suspended{tell: func(text string) { _, _ = io.WriteString(sys.Stderr, text) }}
	return control.WaitRequest{
		ThreadIDs: []thread.ID{id}, Timeout: forever, Progress: func(now control.Progress) { stuck.look(now.Suspended) },
	}
}

func (s *suspended) look(pids map[thread.ID]int) {
	seen := make(map[thread.ID]int, len(pids))
	for _, id := range slices.Sorted(maps.Keys(pids)) {
		if seen[id] = s.seen[id] + 1; seen[id] == 2 {
			s.tell(fmt.Sprintf("Warning: thread %s does nothing, because its process is suspended\nTry:   kill -CONT %d; rye-mcp threads kill %s ends it\n",
				id, pids[id], id))
		}
	}
	s.seen = seen
}
