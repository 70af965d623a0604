package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// TestAttackFolderName: the folder of a project is called what hides the rest of a terminal, sets its title or is a line of the screen of trust. Each command shows it on one line, as signs.
func TestAttackFolderName(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "-- .ai/config/agent/agent.yaml --\nlimits: {defaults: {spend: 9}}\n-- model.yaml --\nturns:\n  - text: done\n")
	const line = "everything was looked at and is harmless"
	folder := filepath.Join(filepath.Dir(p.dir), "a\x1b[8m\x1b]0;title\a\u202e\n"+line+"\r\u009b8m")
	p.noError(os.Rename(p.dir, folder))
	p.dir = folder
	for _, command := range []string{
		"trust", "trust --diff", "trust --yes", "trust", "trust --revoke", "trust --revoke", "trust --adopt-state", "init", "doctor", "validate --all", "items list",
		"config show", "config set agent provider.default openai", "store", "store check", "threads list", "threads health", "memory list", "keys list", "models", "sign hello", "test",
	} {
		out, _ := p.rye(nil, strings.Fields(command)...) // some have nothing to do here; what they say counts
		for _, said := range strings.Split(out, "\n") {
			if strings.HasPrefix(said, line) || strings.ContainsFunc(said, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
				t.Errorf("%s: %q", command, said)
			}
		}
	}
}
