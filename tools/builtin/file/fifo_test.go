//go:build unix

package file

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Opening a named pipe would block until somebody writes to it.
func TestNotRegular(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	b.refuse("read", in{"path": "pipe"}, tool.CodeBadArguments, "named pipe")
	b.refuse("write", in{"path": "pipe", "content": ""}, tool.CodeBadArguments, "named pipe")
	if r := do[grepResult](b, "grep", in{"pattern": "x"}); r.FilesSearched != 0 {
		t.Errorf("grep opened the pipe: %+v", r)
	}
}

// TestAttackReplacedWhileOpened: a command puts a link, a pipe or another name of a protected file in the place of a file that was judged, before it is opened.
// The new file is judged anew, and refused.
func TestAttackReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".git/config", "[core]\n\tsecret = 1\n")
	secret := filepath.Join(b.dir, ".git", "config")
	p, err := (&space{}).open(tool.Env{Project: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	for what, put := range map[string]func(path string) error{
		"a link":             func(path string) error { return os.Symlink(secret, path) },
		"a pipe":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":           func(path string) error { return os.Mkdir(path, 0o700) },
		"its name elsewhere": func(path string) error { return os.Link(secret, path) },
	} {
		b.put("f", "harmless\n")
		pl, err := p.find("f", protect.Reading)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(b.dir, "f")
		if err := errors.Join(os.Remove(path), put(path)); err != nil {
			t.Fatal(err)
		}
		if data, _, err := pl.content(); err == nil {
			t.Errorf("%s: read %q", what, data)
		}
		pl.Close()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
