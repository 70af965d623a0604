package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// TestChainsReadTheirIndexes: the cost of a cancel must not grow with the threads
// that have nothing to do with it.
func TestChainsReadTheirIndexes(t *testing.T) {
	t.Parallel()
	s := open(t)
	for query, want := range map[string][]string{
		sqlstore.WithSubtree + "SELECT thread_id FROM threads WHERE thread_id IN subtree": {"threads_parent", "threads_continuation"},
		sqlstore.AboveThreads + "SELECT thread_id FROM threads WHERE thread_id IN above":  nil,
		"SELECT thread_id FROM threads WHERE thread_id = ? AND " + sqlstore.MayRun:        nil,
	} {
		steps := queryPlan(t, s.Registry(), query, "id")
		plan := strings.Join(steps, "; ")
		for _, index := range want {
			if !strings.Contains(plan, index) {
				t.Errorf("%s\ndoes not use %s: %s", query, index, plan)
			}
		}
		for _, step := range steps {
			if step == "SCAN threads" || step == "SCAN t" || step == "SCAN before" {
				t.Errorf("%s\nscans: %s", query, plan)
			}
		}
	}
}
