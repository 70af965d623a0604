package snapshot_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot/snapshottest"
)

func TestLocal(t *testing.T) {
	t.Parallel()
	snapshottest.Run(t, func(t *testing.T, clock *snapshottest.Clock) snapshot.Store { return localIn(t.TempDir(), clock) })
}

func localIn(dir string, clock *snapshottest.Clock) snapshot.Local {
	return snapshot.Local{Dir: func() string { return filepath.Join(dir, "snapshots") }, Now: clock.Now}
}

func putIn(t *testing.T, s snapshot.Store, content string) snapshot.Hash {
	t.Helper()
	h := snapshot.HashOf([]byte(content))
	if err := s.Put(t.Context(), h, int64(len(content)), strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return h
}

// onlyFile is the one file below a folder.
func onlyFile(t *testing.T, dir string) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = name
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no file in %s (%v)", dir, err)
	}
	return found
}

// TestAttackChangedBlob: a second process changes a content of a snapshot, or puts a link, a pipe or a folder in its place.
// Reading it is an error that names the content, and nothing that a link leads to is read.
func TestAttackChangedBlob(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(name string) error{
		"another content": func(name string) error { return os.WriteFile(name, []byte("other"), 0o600) },
		"a longer one":    func(name string) error { return os.WriteFile(name, []byte("right and more"), 0o600) },
		"an empty one":    func(name string) error { return os.Truncate(name, 0) },
		"a link":          func(name string) error { return replaced(name, func() error { return os.Symlink("/etc/hosts", name) }) },
		"a link to the same": func(name string) error {
			return errors.Join(os.Rename(name, name+".x"), os.Symlink(filepath.Base(name)+".x", name))
		},
		"a folder": func(name string) error { return replaced(name, func() error { return os.Mkdir(name, 0o700) }) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := localIn(dir, snapshottest.NewClock())
			h := putIn(t, s, "right")
			if err := change(onlyFile(t, dir)); err != nil {
				t.Fatal(err)
			}
			got, err := snapshot.ReadAll(t.Context(), s, h, 100)
			if !errors.Is(err, snapshot.ErrUnusable) || !strings.Contains(err.Error(), string(h)) {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
}

func replaced(name string, by func() error) error { return errors.Join(os.Remove(name), by()) }

// TestAttackSnapshotFolder: the folder of snapshots, or one in it, is replaced by a link to another folder.
// Nothing is read or written where the link leads.
func TestAttackSnapshotFolder(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{".", "blobs", "names"} {
		dir, elsewhere := t.TempDir(), t.TempDir()
		s := localIn(dir, snapshottest.NewClock())
		h := putIn(t, s, "right")
		if err := s.Name(t.Context(), "a/b-1", h); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(elsewhere, os.DirFS(filepath.Join(dir, "snapshots", folder))); err != nil {
			t.Fatal(err)
		}
		before := listOf(t, elsewhere)
		linked := filepath.Join(dir, "snapshots", folder)
		if err := errors.Join(os.RemoveAll(linked), os.Symlink(elsewhere, linked)); err != nil {
			t.Fatal(err)
		}
		_, get := snapshot.ReadAll(t.Context(), s, h, 100)
		other := snapshot.HashOf([]byte("other"))
		put := s.Put(t.Context(), other, 5, strings.NewReader("other"))
		name := s.Name(t.Context(), "a/b-2", h)
		if folder != "names" && (get == nil || put == nil) || folder != "blobs" && name == nil {
			t.Errorf("%s: get %v, put %v, name %v", folder, get, put, name)
		}
		_, _ = s.Remove(context.Background(), h, time.Now().Add(time.Hour))
		_ = s.Forget(context.Background(), "a/b-1")
		if after := listOf(t, elsewhere); after != before {
			t.Errorf("%s: there is now %s, before %s", folder, after, before)
		}
	}
}

func listOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil {
			info, infoErr := d.Info()
			if infoErr != nil {
				return infoErr
			}
			b.WriteString(name + " " + info.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLocalFilesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := localIn(dir, snapshottest.NewClock())
	if err := s.Name(t.Context(), "a/b-1", putIn(t, s, "right")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(filepath.Join(dir, "snapshots"), func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
