package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// shipped is the content of the embedded .ai folder.
func shipped() fs.FS { return os.DirFS(filepath.Join("..", "system", "ai")) }

// spaces writes the files of a test and returns a loader over them and the
// shipped settings. Names are "project/…" or "user/…", the path below .ai/config
// following.
func spaces(t testing.TB, files map[string]string) (*config.Loader, resolve.Roots) {
	t.Helper()
	dir := t.TempDir()
	roots := resolve.Roots{
		Project: filepath.Join(dir, "project"),
		User:    filepath.Join(dir, "user"),
		System:  shipped(),
	}
	for name, content := range files {
		space, rel, _ := strings.Cut(name, "/")
		path := filepath.Join(dir, space, ".ai", "config", filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return config.New(roots), roots
}

// accepted is spaces with a project whose settings the user has accepted as they
// are.
func accepted(t testing.TB, files map[string]string) (*config.Loader, resolve.Roots) {
	t.Helper()
	loader, roots := spaces(t, files)
	trusttest.AcceptSettings(t, roots)
	return loader, roots
}

// system is a loader over a system space alone, which holds one more file than
// the shipped ones.
func system(t testing.TB, name, content string) *config.Loader {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(shipped(), "config", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(shipped(), path)
		files[path] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files["config/"+name] = &fstest.MapFile{Data: []byte(content)}
	return config.New(resolve.Roots{System: files})
}
