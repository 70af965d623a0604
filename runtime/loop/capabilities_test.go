package loop

import (
	"os"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// capabilities.md says of each tool behind a capability what became of it, and
// the model is offered what it says.
func TestCapabilitiesOnRecord(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write(".ai/tools/team/deploy.py", "\"\"\"Deploys.\"\"\"\n__executor_id__ = 'rye/core/runtimes/python/script'\n")
	h.write(".ai/tools/test/fail.sh", "# Hides the tool of that id.\nexit 1\n")
	h.write(".ai/tools/test-echo.sh", "echo\n")
	h.script(`
turns:
  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: hi}}]}
  - {match: {turn: 2}, text: done}
`)
	own := []string{"rye.execute.tool.test.*", "rye.execute.tool.team.*", "rye.execute.tool.test-echo", "rye.fetch.*"}
	rec := h.run(job{capabilities: own, meta: func(m *thread.Meta) {
		m.Ceiling = [][]string{{"rye.execute.tool.te*", "rye.fetch.*"}, {"rye.execute.tool.test*"}}
	}})
	if rec.Status != thread.Completed {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome)
	}
	raw, err := os.ReadFile(h.folder(rec.ThreadID).Capabilities())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"# Capabilities of " + string(rec.ThreadID),
		"    - `test/echo`: offered as `test_echo`",
		"    - `test/fail`: not offered, built-in tools only run here, and test/fail is none",
		"    - `test-echo`: not offered, built-in tools only run here, and test-echo is none",
		"    - `team/deploy`: denied, the ancestor 2 levels up does not allow it",
		"  - `rye.fetch.*`: without effect, an ancestor allows nothing of it",
		"- `test_echo` (test/echo)",
	} {
		if !strings.Contains(string(raw), line+"\n") {
			t.Errorf("no line %q in\n%s", line, raw)
		}
	}
	for _, offered := range h.server.Requests()[0].Tools {
		if offered == "test_fail" {
			t.Error("a tool is offered that an item hides")
		}
	}
}
