package gc

import (
	"runtime/debug"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
)

func TestIsThread(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want bool
	}{
		{append([]string{"rye-mcp"}, spawn.Args("/project", "id")...), true},
		{[]string{"rye-mcp", "thread", "run", "--help"}, false},
		{[]string{"rye-mcp", "threads", "list", "--json"}, false},
		{[]string{"rye-mcp"}, false},
		{nil, false},
	} {
		if got := isThread(test.args); got != test.want {
			t.Errorf("%v: %v", test.args, got)
		}
	}
}

func TestSettle(t *testing.T) { //nolint:paralleltest // the percentage is the process's
	before := debug.SetGCPercent(400)
	defer debug.SetGCPercent(before)
	settle()
	if got := debug.SetGCPercent(settledPercent); got != settledPercent {
		t.Errorf("a settled thread collects at %d", got)
	}
}
