package cli

import (
	"slices"
	"testing"
)

func TestReferencesAreNoValues(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"A": "$A", "B_KEY": "${B_KEY}", "C": "${env:C}", "D": "{env:D}", "E": "${E:-}",
		"F": "x", "G": "$F", "H": "${F}", "I": "", "J": "J", "K": "$$K", "L": "{",
	}
	names := []string{"F", "A", "B_KEY", "C", "G", "D", "E", "H", "I", "J", "K", "L"}
	environ := make([]string, len(names))
	for i, name := range names {
		environ[i] = name + "=" + values[name]
	}
	kept, getenv := withoutReferences(environ, func(name string) string { return values[name] })
	if want := []string{"F=x", "G=$F", "H=${F}", "I=", "J=J", "K=$$K", "L={"}; !slices.Equal(kept, want) {
		t.Errorf("%q, want %q", kept, want)
	}
	for _, name := range names {
		want := values[name]
		if slices.Contains([]string{"A", "B_KEY", "C", "D", "E"}, name) {
			want = ""
		}
		if got := getenv(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	same, _ := withoutReferences(environ[:1], nil)
	if &same[0] != &environ[0] {
		t.Error("an environment without references is copied")
	}
}
