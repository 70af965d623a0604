package resolve_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// wantUnreadable checks that knowledge id of the project is refused, though the
// system space has one of the same id.
func wantUnreadable(t *testing.T, w *world, id, reason string) {
	t.Helper()
	w.writeSystem("knowledge/"+id+".md", "system")
	found, err := w.Find(item.Knowledge, id)
	var unreadable *resolve.UnreadableError
	if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), reason) {
		t.Fatalf("found %+v, %v, want an UnreadableError with %q", found, err, reason)
	}
	if unreadable.ID != id || unreadable.Space != item.Project || !strings.HasPrefix(unreadable.Path, w.project) {
		t.Errorf("error %+v", unreadable)
	}
	if _, err := w.FindAny(id); !errors.As(err, &unreadable) {
		t.Errorf("FindAny: %v", err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := filepath.Join(t.TempDir(), "outside.md")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.project, ".ai", "knowledge")
	write(t, w.project, "knowledge/real/a.md", "inside")
	write(t, w.project, "config/keys/private.md", "key")
	link(t, filepath.FromSlash("real/a.md"), filepath.Join(dir, "alias.md"))
	link(t, "real", filepath.Join(dir, "folder"))
	link(t, outside, filepath.Join(dir, "absolute.md"))
	relative, err := filepath.Rel(dir, outside)
	if err != nil {
		t.Fatal(err)
	}
	link(t, relative, filepath.Join(dir, "relative.md"))
	link(t, filepath.FromSlash("../config/keys/private.md"), filepath.Join(dir, "key.md"))
	link(t, filepath.Dir(outside), filepath.Join(dir, "away"))
	link(t, "nowhere.md", filepath.Join(dir, "dangling.md"))
	link(t, "loop.md", filepath.Join(dir, "loop.md"))
	link(t, ".", filepath.Join(dir, "real", "again"))

	for _, id := range []string{"alias", "folder/a", "real/again/a", "real/a"} {
		want := "inside"
		if found, err := w.Find(item.Knowledge, id); err != nil || string(found.Content) != want {
			t.Errorf("%s: %+v, %v", id, found, err)
		}
	}
	for _, id := range []string{"absolute", "relative", "key", "away/outside"} {
		wantUnreadable(t, w, id, "escapes")
	}
	wantUnreadable(t, w, "dangling", "no such file")
	wantUnreadable(t, w, "loop", "loop")

	entries, err := w.All(item.Knowledge)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		if e.Space == item.Project {
			ids = append(ids, e.ID)
		}
	}
	if got := strings.Join(ids, " "); got != "alias real/a" {
		t.Errorf("listed %q", got)
	}
}

func TestKindFolderLeadsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "d.md"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link(t, elsewhere, filepath.Join(w.project, ".ai", "directives"))
	if _, err := w.Find(item.Directive, "d"); err == nil || !strings.Contains(err.Error(), "project space") {
		t.Errorf("got %v", err)
	}
	if _, err := w.All(item.Directive); err == nil {
		t.Error("it was listed")
	}
}

// The user's .ai may be a link to where it is kept; a project's may not lead out.
func TestLinkedSpace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := t.TempDir()
	write(t, shared, "directives/d.md", "x")
	for _, dir := range []string{w.project, w.user} {
		if err := os.RemoveAll(filepath.Join(dir, ".ai")); err != nil {
			t.Fatal(err)
		}
		link(t, filepath.Join(shared, ".ai"), filepath.Join(dir, ".ai"))
	}
	if found, err := w.Find(item.Directive, "d"); err != nil || found.Space != item.User {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestRegularFilesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.project, ".ai", "knowledge", "dir.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantUnreadable(t, w, "dir", "a directory")
	if entries, err := w.All(item.Knowledge); err != nil || len(entries) != 1 {
		t.Errorf("listed %+v, %v", entries, err)
	}
}

// brokenFS fails to open what lies at or below a path.
type brokenFS struct {
	fstest.MapFS
	broken string
}

func (b brokenFS) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, b.broken) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.Open(name)
}

func (b brokenFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if strings.HasPrefix(name, b.broken) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.ReadDir(name)
}

func (b brokenFS) Stat(name string) (fs.FileInfo, error) {
	if strings.HasPrefix(name, b.broken+"/") {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.Stat(name)
}

func TestUnreadableFolder(t *testing.T) {
	t.Parallel()
	system := fstest.MapFS{"tools/a/x.sh": {}, "tools/b/x.sh": {}, "tools/c/x.sh": {}}
	r := resolve.New(resolve.Roots{System: brokenFS{system, "tools/b"}})
	entries, err := r.All(item.Tool)
	if err != nil || len(entries) != 2 || entries[0].ID != "a/x" || entries[1].ID != "c/x" {
		t.Errorf("listed %+v, %v", entries, err)
	}
	var unreadable *resolve.UnreadableError
	if _, err := r.Find(item.Tool, "b/x"); !errors.As(err, &unreadable) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
