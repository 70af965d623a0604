package itemfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
)

func open(t *testing.T, dir string) *itemfile.Folder {
	t.Helper()
	f, err := itemfile.Open(dir, item.Tool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, dir)
	never := time.Time{}
	w, err := f.Put("a/b/c", ".py", []byte("one"), never)
	if err != nil || w.Path != filepath.Join(dir, ".ai", "tools", "a", "b", "c.py") || w.Replaced != "" || content(t, w.Path) != "one" {
		t.Fatalf("%+v, %v", w, err)
	}
	for _, tt := range []struct {
		id, ext string
		at      time.Time
		why     itemfile.Why
	}{
		{"a/b/c", ".py", never, itemfile.Exists},
		{"a/b/c", ".sh", never, itemfile.SameID},
		{"a/b/c", ".sh", time.Unix(1, 0), itemfile.SameID},
		{"a/b/c.py/d", ".py", never, itemfile.NoItems},
	} {
		_, err := f.Put(tt.id, tt.ext, []byte("two"), tt.at)
		if e, ok := errors.AsType[*itemfile.TakenError](err); !ok || e.Why != tt.why {
			t.Errorf("%s%s: %v, want reason %d", tt.id, tt.ext, err, tt.why)
		}
	}
	for _, bad := range []struct{ id, ext string }{{"../x", ".py"}, {"", ".py"}, {"x", ".md"}, {"x", ""}} {
		if _, err := f.Put(bad.id, bad.ext, nil, never); err == nil {
			t.Errorf("%q%q is written", bad.id, bad.ext)
		}
	}
	if content(t, w.Path) != "one" {
		t.Error("what stood there is changed")
	}
	w, err = f.Put("a/b/c", ".py", []byte("two"), time.Unix(1_700_000_000, 0))
	if err != nil || content(t, w.Path) != "two" || content(t, w.Replaced) != "one" {
		t.Fatalf("%+v, %v", w, err)
	}
	entries, err := os.ReadDir(filepath.Dir(w.Path))
	if err != nil || len(entries) != 2 {
		t.Errorf("beside it: %v, %v", entries, err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	f := open(t, dir)
	tools := filepath.Join(dir, ".ai", "tools")
	for name, to := range map[string]string{"out": outside, "in": tools, "file.py": filepath.Join(outside, "file.py")} {
		if err := os.Symlink(to, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"out/x", "in/x", "file"} {
		if _, err := f.Put(id, ".py", []byte("x"), time.Unix(1, 0)); err == nil {
			t.Errorf("%s is written", id)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
}
