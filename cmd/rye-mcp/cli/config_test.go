package cli

import (
	"strings"
	"testing"
)

// TestOriginsAreNeverCutOff: file and line of a setting are shown whole, however
// narrow the terminal is.
func TestOriginsAreNeverCutOff(t *testing.T) {
	t.Parallel()
	long := "/home/somebody/work/projects/clients/example/website/.ai/config/agent/resilience.yaml"
	values := []valueJSON{
		{Key: "limits.spend", Value: 2, Space: "project", Path: long, Line: 12},
		{Key: "provider.order", Value: []string{"anthropic", "openai", "gemini", "openrouter"}, Space: "system", Path: "system:config/agent/agent.yaml", Line: 9},
	}
	for _, width := range []int{0, 40, 80, 400} {
		var out strings.Builder
		if err := writeValues(display{out: &out, width: width}, values); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"project: " + long + ":12\n", "system:config/agent/agent.yaml:9\n", "limits.spend"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%d columns: no %q in\n%s", width, want, out.String())
			}
		}
		lines := strings.Count(out.String(), "\n")
		if want := map[bool]int{true: 2, false: 4}[width == 0 || width == 400]; lines != want {
			t.Errorf("%d columns: %d lines, want %d\n%s", width, lines, want, out.String())
		}
	}
}
