package snapshot_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot/snapshottest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func (s *scene) opened(t testing.TB) (snapshot.Hash, *snapshot.Manifest) {
	t.Helper()
	name := s.make(t).Name
	m, err := snapshot.Open(t.Context(), s.store, s.seal, name)
	if err != nil {
		t.Fatal(err)
	}
	return name, m
}

func (s *scene) layouts(dir string) snapshot.Layouts {
	return snapshot.Layouts{Dir: dir, Now: s.clock.Now}
}

// TestMaterialize: items that are laid out are found as they were, and a second time costs
// no reading.
func TestMaterialize(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/team/a.py", "a")
	write(t, s.project, ".ai/tools/team/same.py", "a")
	write(t, s.user, ".ai/knowledge/k.md", "k")
	if err := os.Chmod(filepath.Join(s.project, ".ai/tools/team/a.py"), 0o755); err != nil {
		t.Fatal(err)
	}
	name, m := s.opened(t)
	dir := filepath.Join(t.TempDir(), "cache", "layouts")
	folder, err := s.layouts(dir).Materialize(t.Context(), s.store, name, m)
	if err != nil {
		t.Fatal(err)
	}
	wantLaidOut(t, folder, m)
	again, err := s.layouts(dir).Materialize(t.Context(), unreadable{}, name, m)
	if err != nil || again != folder {
		t.Errorf("again: %s, %v", again, err)
	}
	roots := snapshot.RootsOf(folder)
	there := &snapshot.Maker{Roots: roots, Store: s.store, Seal: s.Seal, Program: s.Program, Now: s.clock.Now}
	if made, err := there.Make(t.Context()); err != nil || made.Name != name {
		t.Errorf("a snapshot of what was laid out is %s, %v; want %s", made.Name, err, name)
	}
}

// unreadable are contents that nobody may ask for.
type unreadable struct{ snapshot.Blobs }

func (unreadable) Get(context.Context, snapshot.Hash) (io.ReadCloser, error) {
	return nil, errors.New("somebody reads")
}

// TestMaterializeAtOnce: several processes lay out the same, and all have it.
func TestMaterializeAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		write(t, s.project, ".ai/tools/"+name+".py", name)
	}
	name, m := s.opened(t)
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.layouts(dir).Materialize(t.Context(), s.store, name, m); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantLaidOut(t, filepath.Join(dir, string(name)), m)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// TestAttackAlteredSnapshot: a second process changes or removes a content of a snapshot before a worker lays it out.
// Nothing is laid out, and the error says which file it is about.
func TestAttackAlteredSnapshot(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(name string) error{
		"removed": os.Remove,
		"altered": func(name string) error { return os.WriteFile(name, []byte("b"), 0o600) },
		"longer":  func(name string) error { return os.WriteFile(name, []byte("aa"), 0o600) },
	} {
		s := newScene(t)
		write(t, s.project, ".ai/tools/a.py", "a")
		name, m := s.opened(t)
		h := string(m.Files[0].Hash)
		if err := change(filepath.Join(s.state, "snapshots", "blobs", h[:2], h)); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		_, err := s.layouts(dir).Materialize(t.Context(), s.store, name, m)
		if !errors.Is(err, snapshot.ErrUnusable) || !strings.Contains(err.Error(), "project space") {
			t.Errorf("%s: %v", what, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%s: left are %v, %v", what, entries, err)
		}
	}
}

// TestAttackHostileLayout: a manifest that was never checked names files outside the folders of items.
// Nothing is written, inside or outside.
func TestAttackHostileLayout(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	h := putIn(t, s.store, "x")
	for _, name := range []string{"../../../x", "/tmp/x", ".ai/tools/../../../../x", ".ai/config/x", ".git/hooks/post-checkout"} {
		dir := t.TempDir()
		m := &snapshot.Manifest{Files: []snapshot.File{{Space: item.Project, Path: name, Size: 1, Hash: h}}}
		if _, err := s.layouts(filepath.Join(dir, "layouts")).Materialize(t.Context(), s.store, h, m); !errors.Is(err, snapshot.ErrUnusable) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(filepath.Join(dir, "layouts")); err != nil || len(entries) != 0 {
			t.Errorf("%s: left are %v, %v", name, entries, err)
		}
	}
	if _, err := s.layouts(t.TempDir()).Materialize(t.Context(), s.store, "../x", &snapshot.Manifest{}); err == nil {
		t.Error("a name that leads up is taken")
	}
}

// TestAttackSwappedLayout: a second process puts a link in the place of a folder while a snapshot is laid out.
// Nothing is written where the link leads.
func TestAttackSwappedLayout(t *testing.T) {
	t.Parallel()
	for _, swapped := range []string{"", "project", "project/.ai", "project/.ai/tools", "project/.ai/tools/team"} {
		s := newScene(t)
		write(t, s.project, ".ai/tools/team/a.py", "a")
		write(t, s.project, ".ai/tools/team/b.py", "b")
		name, m := s.opened(t)
		dir, elsewhere := t.TempDir(), t.TempDir()
		l := s.layouts(dir)
		l.Crashpoints = func(at thread.Crashpoint) {
			if at != snapshot.CrashLaidFile {
				return
			}
			drafts, _ := filepath.Glob(filepath.Join(dir, ".draft-*"))
			for _, draft := range drafts {
				folder := filepath.Join(draft, swapped)
				if info, err := os.Lstat(folder); err == nil && info.IsDir() {
					_ = os.Rename(folder, filepath.Join(dir, "moved"))
					_ = os.MkdirAll(filepath.Join(elsewhere, ".ai/tools/team"), 0o700)
					_ = os.Symlink(elsewhere, folder)
				}
			}
		}
		_, err := l.Materialize(t.Context(), s.store, name, m)
		wrote := 0
		_ = filepath.WalkDir(elsewhere, func(_ string, d fs.DirEntry, _ error) error {
			if !d.IsDir() {
				wrote++
			}
			return nil
		})
		if wrote > 0 || err == nil && swapped != "" {
			t.Errorf("%q swapped: %d files written elsewhere, %v", swapped, wrote, err)
		}
	}
}

// TestAttackSwappedItems: a second process puts a link in the place of a folder of items while a snapshot of it is made.
// No file behind the link is in the snapshot.
func TestAttackSwappedItems(t *testing.T) {
	t.Parallel()
	s, elsewhere := newScene(t), t.TempDir()
	write(t, elsewhere, "a.py", "secret")
	write(t, elsewhere, "b.py", "secret")
	write(t, s.project, ".ai/tools/team/a.py", "a")
	write(t, s.project, ".ai/tools/team/b.py", "b")
	s.Store = &hookedBlobs{Blobs: s.store, before: func() {
		folder := filepath.Join(s.project, ".ai/tools/team")
		if os.Rename(folder, folder+"2") == nil {
			_ = os.Symlink(elsewhere, folder)
		}
	}}
	_, _ = s.Make(t.Context())
	if s.allBlobs(t)[snapshot.HashOf([]byte("secret"))] {
		t.Error("the secret is kept")
	}
	made, err := s.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := snapshot.Open(t.Context(), s.store, s.seal, made.Name)
	if err != nil || len(m.Files) != 2 || m.Files[0].Path != ".ai/tools/team2/a.py" {
		t.Errorf("%+v, %v", m, err)
	}
}

// hookedBlobs does something before it is asked what is missing.
type hookedBlobs struct {
	snapshot.Blobs
	before func()
}

func (h *hookedBlobs) Use(ctx context.Context, hashes []snapshot.Hash) ([]snapshot.Hash, error) {
	h.before()
	return h.Blobs.Use(ctx, hashes)
}

// TestBring: a snapshot that was made elsewhere is here then, and what is here is not
// fetched again.
func TestBring(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/a.py", "a")
	write(t, s.project, ".ai/tools/b.py", "b")
	name, _ := s.opened(t)
	to := localIn(t.TempDir(), s.clock)
	for range 2 {
		if err := snapshot.Bring(t.Context(), s.store, to, s.seal, name, s.clock.Now()); err != nil {
			t.Fatal(err)
		}
		s.clock.Add(snapshot.Grace)
	}
	if _, err := s.layouts(t.TempDir()).Materialize(t.Context(), to, name, must(snapshot.Open(t.Context(), to, s.seal, name))(t)); err != nil {
		t.Error(err)
	}
	s.clock.Add(snapshot.Grace)
	if err := snapshot.Bring(t.Context(), unreadable{}, to, s.seal, name, s.clock.Now()); err != nil {
		t.Errorf("what is here is fetched: %v", err)
	}
	if err := snapshot.Bring(t.Context(), s.store, localIn(t.TempDir(), s.clock), newSeal(t, here), name, s.clock.Now()); !errors.Is(err, snapshot.ErrUnusable) {
		t.Errorf("by another key: %v", err)
	}
	if err := snapshot.Bring(t.Context(), s.store, to, s.seal, snapshot.HashOf([]byte("none")), s.clock.Now()); !errors.As(err, new(*snapshot.MissingError)) {
		t.Errorf("one that is not there: %v", err)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestCollect: contents go that no thread works by, after a grace.
func TestCollect(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gone := map[thread.ID]bool{}
	collect := func() snapshot.Collected {
		t.Helper()
		c := &snapshot.Collector{Store: s.store, Seal: s.Seal, Now: s.clock.Now, Exists: func(_ context.Context, id thread.ID) (bool, error) { return !gone[id], nil }}
		return must(c.Collect(t.Context()))(t)
	}
	write(t, s.project, ".ai/tools/a.py", "first")
	write(t, s.project, ".ai/tools/b.py", "shared")
	first := s.make(t).Name
	write(t, s.project, ".ai/tools/a.py", "second")
	second := s.make(t).Name
	for id, name := range map[thread.ID]snapshot.Hash{"t/one-1": first, "t/two-1": second} {
		if err := s.store.Name(t.Context(), id, name); err != nil {
			t.Fatal(err)
		}
	}
	putIn(t, s.store, "nobody's")
	if got := collect(); got.Contents != 0 {
		t.Errorf("within the grace %+v goes", got)
	}
	s.clock.Add(snapshot.Grace + time.Second)
	if got := collect(); got != (snapshot.Collected{Contents: 1, Bytes: int64(len("nobody's"))}) {
		t.Errorf("what is nobody's: %+v", got)
	}
	gone["t/one-1"] = true
	if got := collect(); got.Contents != 2 { // "first", and the manifest
		t.Errorf("of a thread that has gone: %+v", got)
	}
	if _, err := s.layouts(t.TempDir()).Materialize(t.Context(), s.store, second, must(snapshot.Open(t.Context(), s.store, s.seal, second))(t)); err != nil {
		t.Errorf("the other one: %v", err)
	}
	if err := s.store.Forget(t.Context(), "t/two-1"); err != nil {
		t.Fatal(err)
	}
	if got := collect(); got.Contents != 3 || len(s.allBlobs(t)) != 0 {
		t.Errorf("of the last one: %+v, left %v", got, s.allBlobs(t))
	}
}

// TestCollectStops: where it cannot be told what threads work by, nothing goes.
func TestCollectStops(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/a.py", "first")
	if err := s.store.Name(t.Context(), "t/one-1", s.make(t).Name); err != nil {
		t.Fatal(err)
	}
	s.clock.Add(2 * snapshot.Grace)
	broken := errors.New("the registry is away")
	c := &snapshot.Collector{Store: s.store, Seal: s.Seal, Now: s.clock.Now, Exists: func(context.Context, thread.ID) (bool, error) { return false, broken }}
	if _, err := c.Collect(t.Context()); !errors.Is(err, broken) || len(s.allBlobs(t)) != 2 {
		t.Errorf("%v, left %v", err, s.allBlobs(t))
	}
}

// TestPrune: a layout of long ago goes, unless somebody works by it.
func TestPrune(t *testing.T) {
	t.Parallel()
	clock := snapshottest.NewClock()
	l := snapshot.Layouts{Dir: filepath.Join(t.TempDir(), "layouts"), Now: clock.Now}
	none := &snapshot.Manifest{}
	var names []snapshot.Hash
	for _, text := range []string{"old", "old and named", "new"} {
		if text == "new" {
			clock.Add(time.Hour)
		}
		names = append(names, snapshot.HashOf([]byte(text)))
		if _, err := l.Materialize(t.Context(), nil, names[len(names)-1], none); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names { // the time of making them is the system's
		if _, err := l.Materialize(t.Context(), nil, name, none); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Hour)
	}
	if _, err := (snapshot.Layouts{Dir: filepath.Join(t.TempDir(), "none")}).Prune(clock.Now(), nil); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	removed, err := l.Prune(clock.Now().Add(-time.Hour), func(h snapshot.Hash) bool { return h == names[1] })
	entries, _ := os.ReadDir(l.Dir)
	if err != nil || removed != 1 || len(entries) != 2 {
		t.Errorf("removed %d, %v; left %v", removed, err, entries)
	}
}
