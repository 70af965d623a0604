package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// TestAccepted: what names the accepted settings changes with what is accepted, is the same
// for two users who have accepted the same, and says nothing of what only stands in a project,
// in the user space, or decides nothing about threads.
func TestAccepted(t *testing.T) {
	t.Parallel()
	machine := func() (roots resolve.Roots, write func(dir, name, text string), now func() string) {
		roots = resolve.Roots{Project: t.TempDir(), User: t.TempDir(), System: shipped()}
		write = func(dir, name, text string) {
			path := filepath.Join(dir, ".ai", "config", "agent", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return roots, write, func() string { return config.Accepted(config.New(roots).Read()) }
	}
	roots, write, now := machine()
	write(roots.Project, "resilience.yaml", "limits: {turns: 3}\n")
	write(roots.Project, "store.yaml", "store: {project: team/app}\n")
	write(roots.User, "resilience.yaml", "limits: {turns: 5}\n")
	if got := now(); got != "" {
		t.Errorf("nothing was accepted, and it is %q", got)
	}
	trusttest.AcceptSettings(t, roots)
	first := now()
	write(roots.Project, "resilience.yaml", "limits: {turns: 2}\n") // tightens, and was not accepted
	if got := now(); first == "" || got != first {
		t.Errorf("it was %q and is %q, with the same accepted", first, got)
	}
	others, write, now := machine()
	write(others.Project, "resilience.yaml", "limits: {turns: 3}\n")
	trusttest.AcceptSettings(t, others)
	if got := now(); got != first {
		t.Errorf("another who has accepted the same has %q and not %q", got, first)
	}
	write(others.Project, "hooks.yaml", "hooks: []\n")
	trusttest.AcceptSettings(t, others)
	if got := now(); got == first || got == "" {
		t.Errorf("with hooks that were accepted, too, it is %q", got)
	}
}
