//go:build unix

package resolve_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// TestAttackPipeForFolder: a project has named pipes where its folders of items would lie, or the folder .ai itself. Nobody waits for a writer, and there are no items in them.
func TestAttackPipeForFolder(t *testing.T) {
	t.Parallel()
	for _, pipe := range []string{".ai", ".ai/directives", ".ai/tools", ".ai/knowledge"} {
		project := t.TempDir()
		path := filepath.Join(project, filepath.FromSlash(pipe))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		resolver := resolve.New(resolve.Roots{Project: project})
		for _, kind := range []item.Kind{item.Directive, item.Tool, item.Knowledge} {
			if _, err := resolver.Find(kind, "thing"); err == nil {
				t.Errorf("%s: %s was found", pipe, kind)
			}
		}
	}
}
