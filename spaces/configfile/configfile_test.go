package configfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/configfile"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func own(t *testing.T, path string) *configfile.File {
	t.Helper()
	f, err := configfile.OpenOwn(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// TestReplace keeps a copy for each change, over no other, and the mode of the file.
func TestReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, "one", 0o640)
	for _, step := range []struct{ after, copied string }{{"two", "c.json.rye-backup-20261122T120000Z"}, {"three", "c.json.rye-backup-20261122T120000Z-2"}} {
		before := content(t, path)
		copied, err := own(t, path).Replace([]byte(step.after), noon)
		if err != nil || filepath.Base(copied) != step.copied || content(t, copied) != before || content(t, path) != step.after {
			t.Errorf("%s, %v", copied, err)
		}
		for _, name := range []string{path, copied} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}
	backups, err := own(t, path).Backups()
	if err != nil || len(backups) != 2 || string(backups[0]) != "two" || string(backups[1]) != "one" {
		t.Errorf("%q, %v", backups, err)
	}
	if got := names(t, filepath.Dir(path)); strings.Count(got, " ") != 2 {
		t.Errorf("beside it: %s", got)
	}
}

func TestNewFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "c.json")
	f := own(t, path)
	if f.Exists() || f.Content != nil {
		t.Errorf("%q", f.Content)
	}
	if copied, err := f.Replace([]byte("x"), noon); err != nil || copied != "" || content(t, path) != "x" {
		t.Errorf("%s, %v", copied, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := own(t, path).Remove(); err != nil || names(t, filepath.Dir(path)) != "" {
		t.Errorf("%v", err)
	}
}

// TestLinkOfTheUser: people keep their settings elsewhere and have links to them.
func TestLinkOfTheUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles", "mcp.json"), filepath.Join(dir, "mcp.json")
	write(t, target, "one", 0o600)
	if err := os.Symlink("dotfiles/mcp.json", link); err != nil {
		t.Fatal(err)
	}
	f := own(t, link)
	real, err := filepath.EvalSymlinks(target)
	if err != nil || f.Path != real || f.Linked != link {
		t.Errorf("%s, %s, %v", f.Path, f.Linked, err)
	}
	if copied, err := f.Replace([]byte("two"), noon); err != nil || filepath.Dir(copied) != filepath.Dir(real) || content(t, link) != "two" {
		t.Errorf("%s, %v", copied, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("nothing", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "large"), "", 0o600)
	if err := os.Truncate(filepath.Join(dir, "large"), 100<<20); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"dangling": configfile.ErrDangling, "folder": configfile.ErrNotRegular, "large": configfile.ErrTooLarge, "large/x": configfile.ErrNotRegular} {
		if f, err := configfile.OpenOwn(filepath.Join(dir, name)); err == nil || name != "large/x" && !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// TestAttackLinkedConfig: a project has a link in the place of an editor's configuration, or of its folder, that leads to a file of the user. Installing into the project is refused and the file stays as it is.
func TestAttackLinkedConfig(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	secret := filepath.Join(home, ".ssh", "config")
	write(t, secret, "Host *", 0o600)
	for name, links := range map[string]map[string]string{
		"the file":             {".cursor/mcp.json": secret},
		"its folder":           {".cursor": filepath.Join(home, ".ssh")},
		"a file that is there": {".cursor/mcp.json": "other.json"},
	} {
		project := t.TempDir()
		for at, to := range links {
			at = filepath.Join(project, filepath.FromSlash(at))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, at); err != nil {
				t.Fatal(err)
			}
		}
		f, err := configfile.OpenIn(project, ".cursor/mcp.json")
		if !errors.Is(err, configfile.ErrLink) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	if content(t, secret) != "Host *" || names(t, filepath.Dir(secret)) != "config" {
		t.Error("it was written")
	}
}

// TestAttackSwappedConfig: between the look at a configuration and the write another process puts a link to a file of the user in its place, or writes it. Nothing is written and no copy is left.
func TestAttackSwappedConfig(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(path, secret string) error{
		"written": func(path, _ string) error { return os.WriteFile(path, []byte("theirs"), 0o600) },
		"a link":  func(path, secret string) error { return errors.Join(os.Remove(path), os.Symlink(secret, path)) },
		"another file with the same text": func(path, _ string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("one"), 0o600), os.Rename(path+"2", path))
		},
		"gone": func(path, _ string) error { return os.Remove(path) },
	} {
		project, home := t.TempDir(), t.TempDir()
		path, secret := filepath.Join(project, ".mcp.json"), filepath.Join(home, "secret")
		write(t, path, "one", 0o600)
		write(t, secret, "secret", 0o600)
		f, err := configfile.OpenIn(project, ".mcp.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := swap(path, secret); err != nil {
			t.Fatal(err)
		}
		_, err = f.Replace([]byte("ours"), noon)
		if !errors.Is(err, configfile.ErrChanged) && !errors.Is(err, configfile.ErrLink) {
			t.Errorf("%s: %v", name, err)
		}
		if content(t, secret) != "secret" || strings.Contains(names(t, project), "backup") {
			t.Errorf("%s: %s", name, names(t, project))
		}
		if err := f.Remove(); err == nil {
			t.Errorf("%s: it was removed", name)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTogether: of many that edit a file at the same time each does so in turn, or is told
// that another was faster; no edit is lost.
func TestTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c")
	write(t, path, "", 0o600)
	const writers, each = 8, 20
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			for written := 0; written < each; {
				f, err := configfile.OpenOwn(path)
				if err != nil {
					t.Error(err)
					return
				}
				err = f.Overwrite(append(f.Content, '.'))
				if closing := f.Close(); closing != nil || err != nil && !errors.Is(err, configfile.ErrChanged) {
					t.Error(err, closing)
					return
				}
				if err == nil {
					written++
				}
			}
		})
	}
	done.Wait()
	if got := content(t, path); got != strings.Repeat(".", writers*each) {
		t.Errorf("%d edits of %d", len(got), writers*each)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ".claude.json")
	write(t, path, "{}", 0o600)
	now := time.Now()
	unlock, err := own(t, path).Lock(now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own(t, path).Lock(now); !errors.Is(err, configfile.ErrBusy) {
		t.Errorf("%v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".lock", 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err = own(t, path).Lock(now.Add(time.Minute)) // left by a program that was killed
	if err != nil || unlock() != nil || names(t, filepath.Dir(path)) != ".claude.json" {
		t.Errorf("%v, %s", err, names(t, filepath.Dir(path)))
	}
}
