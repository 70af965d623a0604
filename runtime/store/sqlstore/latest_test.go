package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// TestLatestGoesThroughAnIndex: nothing is read of threads of other directives.
func TestLatestGoesThroughAnIndex(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, query := range map[string]string{"in a tree": sqlstore.LatestInTreeSQL, "completed": sqlstore.LatestCompletedSQL, "any": sqlstore.LatestSQL} {
		plan := strings.Join(queryPlan(t, s.Registry(), query, "d", "t"), "\n")
		if strings.Contains(plan, "SCAN t\n") || strings.Contains(plan, "SCAN threads") {
			t.Errorf("%s reads the whole table:\n%s", name, plan)
		}
		if name != "in a tree" && !strings.Contains(plan, "SEARCH threads USING INDEX threads_directive") {
			t.Errorf("%s does not go through the index of directives:\n%s", name, plan)
		}
	}
}
