package gitrepo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo/gitrepotest"
)

func TestMain(m *testing.M) { os.Exit(gitrepotest.Run(m)) }

// TestShadowRefused: a folder that git did not make gets no git folder, and none is left of the try.
func TestShadowRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head    string
		folders []string
		made    bool
	}{
		"whole":      {"ref: refs/heads/main\n", []string{"refs", "objects"}, true},
		"no HEAD":    {"", []string{"refs", "objects"}, false},
		"odd HEAD":   {"ref: ../../other\n", []string{"refs", "objects"}, false},
		"no refs":    {"ref: refs/heads/main\n", []string{"objects"}, false},
		"no objects": {"ref: refs/heads/main\n", []string{"refs"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, folder := range c.folders {
				if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte(c.head), 0o600); err != nil {
				t.Fatal(err)
			}
			shadow, err := (&gitrepo.Repository{Top: dir, Private: dir, Common: dir}).Shadow(gitrepotest.Scratch())
			if (err == nil) != c.made || (shadow != "") != c.made {
				t.Errorf("%q, %v", shadow, err)
			}
			if err := os.RemoveAll(shadow); err != nil {
				t.Fatal(err)
			}
		})
	}
}
