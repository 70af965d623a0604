package cli

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
)

// On a narrow terminal the hooks of an event stand below each other, within its
// width, and with all that a wide one shows.
func TestHooksFitTheTerminal(t *testing.T) {
	t.Parallel()
	const condition = "condition: inputs.topic is false: inputs.topic is not there, and so is much else that is told here at some length"
	event := plan.EventPlan{Event: hook.EventThreadStarted, Hooks: []plan.HookForecast{
		{Order: 1, ID: "greet", LayerName: "user", Path: "/home/ada/.ai/config/agent/hooks.yaml", Line: 2, Fires: plan.FiresYes, Does: []string{"execute greeting"}},
		{ID: "quiet", Layer: 1, LayerName: "directive", Path: "work.md", Line: 5, Fires: plan.FiresNo, Why: condition, Does: []string{"execute greeting"}},
	}}
	for _, width := range []int{0, 60, 80, 250} {
		var b strings.Builder
		if err := writeEventPlan(display{out: &b, width: width}, event); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if width > 0 && plain.Columns(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("in %d columns: %q", width, line)
			}
		}
		shown := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{"greet", "quiet", "user", "hooks.yaml:2", "work.md:5", "execute greeting", "always", condition} {
			if !strings.Contains(shown, want) {
				t.Errorf("in %d columns nothing says %q: %s", width, want, b.String())
			}
		}
	}
}
