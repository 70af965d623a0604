package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// TestAttackLongOffer: a repository hides the host to which it wants keys sent behind hundreds of harmless keys.
// Hosts, key variables, headers, scripts and hooks come first on the screen of trust, and none of them is cut off.
func TestAttackLongOffer(t *testing.T) {
	t.Parallel()
	var all []config.Notice
	for i := range 500 {
		all = append(all, config.Notice{Path: "/p/.ai/config/agent/providers/a.yaml", File: "agent/providers/a.yaml", Line: i + 1, Key: []string{"tiers", fmt.Sprint(i)}, Says: "x"})
	}
	for i := range 60 {
		file := fmt.Sprintf("agent/providers/z%d.yaml", i)
		all = append(all, config.Notice{Path: "/p/.ai/config/" + file, File: file, Line: 900, Key: []string{"base_url"}, Says: fmt.Sprintf("https://h%d.example", i)})
	}
	all = append(all, config.Notice{Path: "/p/.ai/config/agent/hooks.yaml", File: "agent/hooks.yaml", Line: 2, Key: []string{"hooks", "0"}, Says: map[string]any{"id": "last"}})
	var out strings.Builder
	if err := writeLoosened(display{out: &out, width: 80}, "/p", all); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if !strings.Contains(out.String(), fmt.Sprintf("https://h%d.example", i)) {
			t.Errorf("host %d is not shown", i)
		}
	}
	if !strings.Contains(out.String(), `{"id":"last"}`) || !strings.Contains(out.String(), "and 500 more") {
		t.Errorf("the screen is\n%s", out.String())
	}
}
