//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// swapped is a look at a file after which something else is put in its place, once.
func swapped(t *testing.T, path string, look looking, put func() error) looking {
	done := false
	return func(name string) (fs.FileInfo, error) {
		info, err := look(name)
		if !done {
			done = true
			if err := errors.Join(os.Remove(path), put()); err != nil {
				t.Fatal(err)
			}
		}
		return info, err
	}
}

// TestAttackPipeWhileOpened: a command puts a pipe, a folder or a link in the place of a file between the look at it and its opening.
// Nobody waits for a writer, and nothing but a regular file is read.
func TestAttackPipeWhileOpened(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		put  func(path string) error
		want string // of who follows links
	}{
		"a pipe":   {put: func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		"a folder": {put: func(path string) error { return os.Mkdir(path, 0o700) }},
		"a link":   {func(path string) error { return os.Symlink("other", path) }, "other"},
		"a link to a pipe": {put: func(path string) error {
			return errors.Join(syscall.Mkfifo(filepath.Join(filepath.Dir(path), "pipe"), 0o600), os.Symlink("pipe", path))
		}},
	} {
		for _, follow := range []bool{false, true} {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			write(t, path, "seen")
			write(t, filepath.Join(dir, "other"), "other")
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			look, want := root.Lstat, ""
			if follow {
				look, want = root.Stat, row.want
			}
			f, info, err := open(swapped(t, path, look, func() error { return row.put(path) }), root.OpenFile, "f")
			got, err := content(f, info, err, 100)
			if string(got) != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrNot) {
				t.Errorf("%s, links followed %v: %q, %v", what, follow, got, err)
			}
			_ = root.Close()
		}
	}
}

// A writer that replaces a file whole does not make its readers fail.
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "old")
	f, info, err := open(swapped(t, path, os.Lstat, func() error { return os.WriteFile(path, []byte("new"), 0o600) }), os.OpenFile, path)
	if got, err := content(f, info, err, 100); err != nil || string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
}

// The very file that was seen is opened, or none.
func TestSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "old")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	seen, err := root.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "g"), "new")
	if err := root.Rename("g", "f"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Seen(root, "f", seen); !errors.Is(err, ErrReplaced) {
		t.Errorf("another file: %v", err)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "f"), filepath.Join(dir, "l")
	text := strings.Repeat("x", 1000)
	write(t, path, text)
	if err := os.Symlink("f", link); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path, 1000); err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := Read(path, 999); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := Read(link, 1000); !errors.Is(err, ErrNot) {
		t.Errorf("a link: %v", err)
	}
	if got, err := ReadFollowed(link, 1000); err != nil || string(got) != text {
		t.Errorf("followed: %d bytes, %v", len(got), err)
	}
	if _, err := Read(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
