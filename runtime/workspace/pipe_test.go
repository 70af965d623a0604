//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// TestAttackPipeInTree: a command puts a pipe in the place of a file of a tree after the file was seen, and nobody ever writes to it.
// The pipe counts as something else than a file, and comparing and applying wait for nobody.
func TestAttackPipeInTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("seen\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	seen, err := root.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if m, err := markOf(root, "f", seen); err != nil || m.kind != kindOther {
		t.Errorf("its mark: %+v, %v", m, err)
	}
	if data, err := readAll(root, "f"); !errors.Is(err, regular.ErrNot) {
		t.Errorf("read %q, %v", data, err)
	}
	if err := copySmall(path, filepath.Join(dir, "copy")); err != nil {
		t.Errorf("copied: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "copy")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a copy: %v", err)
	}
	if err := syncFile(root, "f"); err == nil {
		t.Error("a pipe was synced")
	}
}
