package gitrepo

import (
	"slices"
	"strings"
	"testing"
)

// FuzzFacts: of any configuration, nothing is taken over but facts of a few keys with values that
// are known, and what is written of them says the same again.
func FuzzFacts(f *testing.F) {
	for _, text := range []string{
		"[core]\n\tfileMode = true\n\tfsmonitor = /bin/sh\n", "[ CORE ] symlinks\n", "[core] ; x\nautocrlf=input # y\r\n", "[core \"x\"]\neol = lf\n",
		"[include]\npath = /etc/passwd\n[extensions]\nobjectFormat = sha256", "[core]\nhooksPath = true\\\n", "core.eol = lf", "[core\n]eol = lf",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		said := factsOf(text)
		for key, value := range said {
			if valid := facts()[key]; valid == "" || !slices.Contains(strings.Split(valid, "|"), value) {
				t.Fatalf("%q says %s = %s", text, key, value)
			}
		}
		written := configOf(said)
		again := factsOf(written)
		for key, value := range said {
			if again[key] != value {
				t.Fatalf("%q says %s = %s, and what is written of it %q", text, key, value, again[key])
			}
		}
		if n := len(again); n > len(said)+1 || strings.Count(written, "hooksPath") != 1 || strings.Count(written, "fsmonitor") != 1 {
			t.Fatalf("%q is written as %q", text, written)
		}
	})
}
