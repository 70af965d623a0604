package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// suspended tells a person who waits of threads that do nothing, because their
// process is suspended: each when that is seen twice, a second apart, and again when
// it went on meanwhile.
type suspended struct {
	tell func(text string)
	seen map[thread.ID]int // in how many looks in a row
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
