package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

func TestComplete(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	b := tree(t)
	b.put("src/bell\a.go", "x")
	cases := []struct{ prefix, want string }{
		{"", "main.go src/ sub/"},
		{"s", "src/ sub/"},
		{"src", "src/"},
		{"src/", "src/[x]/ src/a.go src/a.ts src/deep/"},
		{"src/a", "src/a.go src/a.ts"},
		{"./src/a", "./src/a.go ./src/a.ts"},
		{b.dir + "/src/a", b.dir + "/src/a.go " + b.dir + "/src/a.ts"},
		{".h", ".hidden/"},
		{".a", ".ai/"},
		{"nowhere/", ""},
		{"main.go/", ""},
		{"\x00", ""},
		{strings.Repeat("a/", 5000), ""},
	}
	for _, c := range cases {
		got, err := Complete(t.Context(), b.dir, "", c.prefix, 100)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%.20q completes to %q, %v, want %q", c.prefix, got, err, c.want)
		}
	}
	if got, err := Complete(t.Context(), b.dir, "", "src/", 2); err != nil || len(got) != 2 {
		t.Errorf("at most two are %q, %v", got, err)
	}
}

// TestAttackCompletion: a client completes paths to look into protected folders, the user space and what lies outside the project. Nothing of them is offered.
func TestAttackCompletion(t *testing.T) {
	t.Parallel()
	b := tree(t)
	user := filepath.Join(b.dir, "home")
	b.put("home/.ai/config/keys/secret", "x")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "private"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": outside, "git": ".git", "up": "..", "state": ".ai/state"} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, prefix := range []string{
		"../", outside + "/", "out/", "up/", ".git", ".git/", "git/", ".GIT/", "sub/.g", "sub/.git/", ".ai/state", ".ai/state/", "state/",
		"home/.ai", "home/.ai/", "home/.ai/config/keys/", "/", "~/", "src/../../",
	} {
		if got, err := Complete(t.Context(), b.dir, user, prefix, 100); err != nil || len(got) > 0 {
			t.Errorf("%q completes to %q, %v", prefix, got, err)
		}
	}
}
