package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// TestMain runs the tests or, with the arguments of [actor], another process of theirs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "actor" {
		if err := actor(os.Args[2:]); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// world is what two processes share: folders below one, and a clock that is ahead.
type world struct {
	dir  string
	seal *place.Seal
	now  func() time.Time
	at   thread.Crashpoints
}

func openWorld(dir string, ahead time.Duration, at thread.Crashpoints) (*world, error) {
	key, err := sign.LoadFile(filepath.Join(dir, "user/.ai/config/keys/signing/private_key.pem"))
	if err != nil {
		return nil, err
	}
	return &world{dir, place.NewSeal(key, here), func() time.Time { return time.Now().Add(ahead) }, at}, nil
}

func (w *world) store() snapshot.Local {
	return snapshot.Local{Dir: func() string { return filepath.Join(w.dir, "state", "snapshots") }, Now: w.now}
}

func (w *world) maker() *snapshot.Maker {
	return &snapshot.Maker{
		Roots: resolve.Roots{Project: filepath.Join(w.dir, "project"), User: filepath.Join(w.dir, "user")}, Store: w.store(),
		Seal: func() *place.Seal { return w.seal }, Now: w.now, Program: func() snapshot.Program { return snapshot.Program{} },
		Index: func() string { return filepath.Join(w.dir, "state", "snapshots", "index") }, Crashpoints: w.at,
	}
}

func (w *world) layOut(ctx context.Context, name snapshot.Hash) (string, error) {
	m, err := snapshot.Open(ctx, w.store(), w.seal, name)
	if err != nil {
		return "", err
	}
	return w.layouts().Materialize(ctx, w.store(), name, m)
}

func (w *world) layouts() snapshot.Layouts {
	return snapshot.Layouts{Dir: filepath.Join(w.dir, "layouts"), Now: w.now, Crashpoints: w.at}
}

func (w *world) collect(ctx context.Context) (snapshot.Collected, error) {
	return (&snapshot.Collector{
		Store: w.store(), Seal: func() *place.Seal { return w.seal }, Now: w.now, Crashpoints: w.at,
		Exists: func(_ context.Context, id thread.ID) (bool, error) {
			return !strings.HasPrefix(string(id), "gone/"), nil
		},
	}).Collect(ctx)
}

// deed makes a snapshot, lays it out, and collects what is old.
func (w *world) deed(ctx context.Context) error {
	made, err := w.maker().Make(ctx)
	if err != nil {
		return err
	}
	if _, err := w.layOut(ctx, made.Name); err != nil {
		return err
	}
	_, err = w.collect(ctx)
	return err
}

// actor does the deed in a world, and dies at a crash point.
func actor(args []string) error {
	w, err := openWorld(args[0], 0, func(at thread.Crashpoint) {
		if string(at) == args[1] {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err != nil {
		return err
	}
	return w.deed(context.Background())
}

// TestKilled kills a process at each crash point of making a snapshot, laying it out and
// collecting. The snapshot of an earlier thread is whole then, nothing incomplete has the
// name of a content, and the next process makes the same snapshot and leaves nothing
// behind.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, point := range snapshot.Crashpoints() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			w, before := newWorld(t)
			dieAt(t, w.dir, point)
			if _, err := w.layOut(t.Context(), before); err != nil {
				t.Errorf("the snapshot of an earlier thread: %v", err)
			}
			wantNoHalves(t, w)
			if err := w.deed(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantClean(t, w, before)
		})
	}
}

// newWorld has an earlier snapshot that a thread works by, and an older content that is
// nobody's.
func newWorld(t *testing.T) (*world, snapshot.Hash) {
	t.Helper()
	dir := t.TempDir()
	if _, err := sign.Generate(filepath.Join(dir, "user"), false, zeros{}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	past, err := openWorld(dir, -48*time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "project/.ai/tools/a.py", "first")
	write(t, dir, "project/.ai/tools/b.py", "stays")
	made, err := past.maker().Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := past.store().Name(t.Context(), "a/b-1", made.Name); err != nil {
		t.Fatal(err)
	}
	putIn(t, past.store(), "nobody's")
	write(t, dir, "project/.ai/tools/a.py", "second")
	now, err := openWorld(dir, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return now, made.Name
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func dieAt(t *testing.T, dir string, point thread.Crashpoint) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), executable, "actor", dir, string(point)).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process that was to die at %s ended with %v: %s", point, err, out)
	}
}

// wantNoHalves checks that what has the name of a content or of a snapshot is whole.
func wantNoHalves(t *testing.T, w *world) {
	t.Helper()
	for b, err := range w.store().All(t.Context()) {
		if err == nil {
			_, err = snapshot.ReadAll(t.Context(), w.store(), b.Hash, snapshot.MaxFileBytes)
		}
		if err != nil {
			t.Error(err)
		}
	}
	laid, err := filepath.Glob(filepath.Join(w.dir, "layouts", "[0-9a-f]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range laid {
		m, err := snapshot.Open(t.Context(), w.store(), w.seal, snapshot.Hash(filepath.Base(folder)))
		if err != nil {
			t.Fatal(err)
		}
		wantLaidOut(t, folder, m)
	}
}

// wantLaidOut checks that a folder holds the files of a manifest and no others, for its
// owner alone.
func wantLaidOut(t *testing.T, folder string, m *snapshot.Manifest) {
	t.Helper()
	left := map[string]snapshot.File{}
	for _, f := range m.Files {
		left[string(f.Space)+"/"+f.Path] = f
	}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(folder, name)
		f, want := left[filepath.ToSlash(rel)]
		delete(left, filepath.ToSlash(rel))
		mode := fs.FileMode(0o600)
		if d.IsDir() || f.Exec {
			mode = 0o700
		}
		if info.Mode().Perm() != mode || !d.IsDir() && !want || !d.IsDir() && !d.Type().IsRegular() {
			t.Errorf("%s has mode %v", rel, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(name)
		if snapshot.HashOf(content) != f.Hash {
			t.Errorf("%s has another content: %q", rel, content)
		}
		return err
	})
	if err != nil || len(left) > 0 {
		t.Errorf("missing are %v (%v)", left, err)
	}
}

// wantClean checks that what is kept is two snapshots, and that no draft is left after the
// time in which somebody could be writing it.
func wantClean(t *testing.T, w *world, before snapshot.Hash) {
	t.Helper()
	later, err := openWorld(w.dir, snapshot.Grace+time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := later.maker().Make(t.Context()) // which uses it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := later.collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := later.layouts().Prune(later.now(), func(h snapshot.Hash) bool { return h == made.Name }); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(w.dir, "layouts")); err != nil || len(entries) != 1 || entries[0].Name() != string(made.Name) {
		t.Errorf("laid out are %v, %v", entries, err)
	}
	want := map[snapshot.Hash]bool{before: true, made.Name: true}
	for _, name := range []snapshot.Hash{before, made.Name} {
		m, err := snapshot.Open(t.Context(), w.store(), w.seal, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Files {
			want[f.Hash] = true
		}
	}
	err = filepath.WalkDir(filepath.Join(w.dir, "state", "snapshots", "blobs"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !want[snapshot.Hash(d.Name())] {
			t.Errorf("%s is left", name)
		}
		delete(want, snapshot.Hash(d.Name()))
		return err
	})
	if err != nil || len(want) > 0 {
		t.Errorf("gone are %v (%v)", want, err)
	}
}
