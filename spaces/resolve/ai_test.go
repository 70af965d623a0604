package resolve_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// TestAttackLinkedAI: a project's .ai is a link to a folder of the user's. It counts as missing, and nothing behind it is read.
func TestAttackLinkedAI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of     item.Space
		target string // relative to the project
		opens  bool
		away   bool
	}{
		"out of a project":    {item.Project, "../outside", false, true},
		"to nothing outside":  {item.Project, "../nothing", false, true},
		"within a project":    {item.Project, "real", true, false},
		"to nothing within":   {item.Project, "nothing", false, false},
		"of the user's space": {item.User, "../outside", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			project := filepath.Join(root, "project")
			for _, dir := range []string{filepath.Join(project, "real"), filepath.Join(root, "outside")} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(c.target, filepath.Join(project, ".ai")); err != nil {
				t.Fatal(err)
			}
			ai, err := resolve.OpenAI(project, c.of)
			if (err == nil) != c.opens || err != nil && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, resolve.ErrLedAway) != c.away {
				t.Errorf("error %v", err)
			}
			if err == nil {
				_ = ai.Close()
			}
		})
	}
}
