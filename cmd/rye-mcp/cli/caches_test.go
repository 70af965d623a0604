package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPruneCaches removes what was not written to for long, through no link, and nothing
// that others have put into the folder.
func TestPruneCaches(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	const a, b = "0123456789abcdef", "fedcba9876543210"
	now := time.Now()
	old := now.Add(-2 * cacheKept)
	make := func(name string, at time.Time) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for at := at; path != dir; path = filepath.Dir(path) {
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	make("search-"+a+"-v5.db", old)
	make("search-"+a+"-v5.db-wal", old)
	make("search-"+b+"-v5.db", old)
	make("search-"+b+"-v5.db-wal", now) // it is in use
	make("mine.db", old)
	make("system/"+a+"/lib/rye.py", old)
	make("tools/"+a+"/npm/x", old)
	make("tools/"+b+"/npm/x", old)
	if err := os.Chtimes(filepath.Join(dir, "tools", b, "npm"), now, now); err != nil {
		t.Fatal(err)
	}
	make("tools/mine/x", old)
	if err := os.Symlink(elsewhere, filepath.Join(dir, "tools", "00000000000000aa")); err != nil {
		t.Fatal(err)
	}
	removed, err := pruneCaches(t.Context(), dir, now)
	if err != nil || removed != 3 {
		t.Errorf("removed %d, %v", removed, err)
	}
	var left []string
	for _, pattern := range []string{"*.db*", "system/*", "tools/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range found {
			left = append(left, filepath.Base(path))
		}
	}
	want := []string{"mine.db", "search-" + b + "-v5.db", "search-" + b + "-v5.db-wal", "00000000000000aa", b, "mine"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	if removed, err := pruneCaches(t.Context(), filepath.Join(dir, "none"), now); err != nil || removed != 0 {
		t.Errorf("where there is none: %d, %v", removed, err)
	}
}
