package telemetry

import (
	"os"
	"path/filepath"
	"testing"
)

// hostileFiles are what a sender must pass over: a note of another thread in a wrong
// file, names and contents of no thread, links, a folder and one that nobody can read.
func hostileFiles(t *testing.T, dir, other string) {
	t.Helper()
	for name, text := range map[string]string{
		"0123": other, "note": "d-1", "empty": "", "long": string(make([]byte, 1<<20)), "up": "../../../etc/passwd",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
}
