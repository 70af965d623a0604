package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo/gitrepotest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// house is a project in a repository of git, with the workspaces of its threads.
type house struct {
	*Local
	t *testing.T
}

func newHouse(t *testing.T) *house {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	h := houseAt(t, realDir(t), realDir(t))
	h.git("init", "-q", "-b", "main")
	return h
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func houseAt(t *testing.T, project, user string) *house {
	t.Helper()
	seal := placetest.NewSeal(t)
	return &house{t: t, Local: &Local{
		Project: project, User: user, Seal: func() *place.Seal { return seal }, Environ: os.Environ(), Scratch: gitrepotest.Scratch(),
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}}
}

// git runs git as the person does.
func (h *house) git(args ...string) string { return h.gitIn(h.Project, args...) }

// try is git, which may fail.
func (h *house) try(args ...string) (string, error) { return h.gitTry(h.Project, args...) }

func (h *house) gitIn(dir string, args ...string) string {
	h.t.Helper()
	out, err := h.gitTry(dir, args...)
	if err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (h *house) gitTry(dir string, args ...string) (string, error) {
	h.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// puts writes files; an empty text removes one, and -> makes a link.
func puts(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(dir, name)
		if to, link := strings.CutPrefix(text, "->"); link || text == "" {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if link {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path)); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		put(t, path, text)
	}
}

// has lists the files of a folder with their texts; links as ->target.
func has(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all[rel] = "->" + to
			return err
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		all[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// enterNamed makes a workspace, or finds it.
func (h *house) enterNamed(w thread.Workspace) (thread.Workspace, tool.Work) {
	h.t.Helper()
	now, work, leave, err := h.Enter(h.t.Context(), w)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(leave)
	return now, work
}

// enter makes a workspace for a thread.
func (h *house) enter(from string) (thread.Workspace, tool.Work) {
	h.t.Helper()
	return h.enterNamed(thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1", From: from})
}

func (h *house) apply(w thread.Workspace, r ApplyRequest) Applied {
	h.t.Helper()
	a, err := h.Apply(h.t.Context(), w, r)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// base makes a first commit.
func (h *house) base(files map[string]string) {
	h.t.Helper()
	puts(h.t, h.Project, files)
	h.git("add", "-A", "-f")
	h.git("commit", "-q", "--allow-empty", "-m", "base")
}

// status is what git says of the person's index and tree, and of the repository.
func (h *house) status() string {
	return h.git("status", "--porcelain=v1", "-uall") + "\n" + h.git("ls-files", "-s") + "\n" + h.git("for-each-ref") + h.git("worktree", "list", "--porcelain")
}

// TestRoundTrip: a workspace has what lies in the project, committed or not, and what is
// changed there is shown and applied; the person's index and repository stay as they are.
func TestRoundTrip(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a.txt": "one\ntwo\n", "gone.txt": "x\n", "dir/run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n", "link": "->a.txt"})
	if err := os.Chmod(filepath.Join(h.Project, "dir/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	puts(t, h.Project, map[string]string{"a.txt": "one\ntwo\nuncommitted\n", "new file": "untracked\n", "build.log": "ignored\n", "gone.txt": "", "staged": "staged\n", ".ai/state/threads/x": "state\n"})
	h.git("add", "staged")
	before, objects := h.status(), has(t, filepath.Join(h.Project, ".git"))
	w, work := h.enter("")
	want := has(t, h.Project)
	delete(want, "build.log")
	delete(want, ".ai/state/threads/x")
	same(t, "workspace", has(t, work.Root), want)
	if info, err := os.Stat(filepath.Join(work.Root, "dir/run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("mode: %v %v", info, err)
	}
	if log := h.gitIn(work.Root, "log", "--format=%s"); !strings.Contains(log, "base") {
		t.Errorf("history in the workspace: %s", log)
	}
	if c, err := h.Changes(t.Context(), w); err != nil || c.Count() != 0 {
		t.Errorf("no changes: %+v, %v", c, err)
	}
	puts(t, work.Root, map[string]string{"a.txt": "one\n2\nuncommitted\n", "made/deep.txt": "made\n", "staged": "", "made.log": "ignored\n", "l2": "->made/deep.txt", "bin": "\x00\x01"})
	c, err := h.Changes(t.Context(), w)
	if err != nil || fmt.Sprint(c) != "{3 1 1 "+w.Branch()+" [M a.txt A bin A l2 A made/deep.txt D staged] [made.log]}" {
		t.Errorf("changes: %+v, %v", c, err)
	}
	d, err := h.Diff(t.Context(), w, DiffRequest{})
	if err != nil || !strings.Contains(d.Text, "-two\n+2\n") || len(d.Files) != 5 || !d.Files[1].Binary || d.Files[0].Added != 1 || d.Folder != work.Root {
		t.Errorf("diff: %+v, %v", d, err)
	}
	same(t, "the project before", map[string]string{"": h.status()}, map[string]string{"": before})
	if at := h.AppliedAt(w); !at.IsZero() {
		t.Errorf("applied at %s, and nothing was", at)
	}
	a := h.apply(w, ApplyRequest{})
	if a.Count() != 5 || a.Removed {
		t.Errorf("applied: %+v", a)
	}
	now := has(t, h.Project)
	delete(now, "build.log")
	delete(now, ".ai/state/threads/x")
	wanted := has(t, work.Root)
	delete(wanted, "made.log")
	same(t, "the project after", now, wanted)
	if h.git("ls-files", "-s", "staged") == "" {
		t.Error("the person's index was changed")
	}
	same(t, "the repository", has(t, filepath.Join(h.Project, ".git")), objects)
	at := h.AppliedAt(w)
	if a := h.apply(w, ApplyRequest{}); a.Before.IsZero() || a.Count() != 0 || !a.Before.Equal(at) {
		t.Errorf("applied twice: %+v, first at %s", a, at)
	}
}

// TestConflicts: nothing is applied where one file is in conflict, and each is named with
// what became of it on both sides; changes that merge are merged.
func TestConflicts(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	long := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	h.base(map[string]string{"merge": long, "both": "x\n", "deleted-here": "x\n", "deleted-there": "x\n", "bin": "\x00a", "typed": "x\n", "easy": "x\n", "same": "x\n"})
	w, work := h.enter("")
	puts(t, work.Root, map[string]string{
		"merge": "one\n" + long[2:], "both": "there\n", "deleted-here": "there\n", "deleted-there": "", "bin": "\x00b", "typed": "->easy", "easy": "there\n", "added": "there\n",
		"under/x": "there\n", "same": "both\n", "linked/x": "there\n",
	})
	puts(t, h.Project, map[string]string{
		"merge": long[:len(long)-2] + "nine\n", "both": "here\n", "deleted-here": "", "deleted-there": "here\n", "bin": "\x00c", "typed": "here\n", "added": "here\n", "under": "a file\n", "same": "both\n",
		"linked": "->" + t.TempDir(),
	})
	before := has(t, h.Project)
	_, err := h.Apply(t.Context(), w, ApplyRequest{})
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok {
		t.Fatal(err)
	}
	var got []string
	for _, c := range conflict.Conflicts {
		got = append(got, c.Path+" "+c.Kind+" "+c.Here+"/"+c.There)
		if c.Path == "both" && c.Hunk != "<<<<<<< here\n"+"here\n||||||| before\nx\n=======\nthere\n>>>>>>> there\n" {
			t.Errorf("hunk %q", c.Hunk)
		}
	}
	slices.Sort(got)
	want := []string{
		"added both_added added/added", "bin both_modified modified/modified", "both both_modified modified/modified", "deleted-here deleted_here deleted/modified",
		"deleted-there deleted_there modified/deleted", "linked/x in_the_way /added", "typed type_changed modified/modified", "under/x in_the_way /added",
	}
	if !slices.Equal(got, want) {
		t.Errorf("conflicts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	same(t, "the project", has(t, h.Project), before)
	puts(t, h.Project, map[string]string{"both": "x\n", "deleted-here": "x\n", "deleted-there": "x\n", "bin": "\x00a", "typed": "x\n", "added": "", "under": "", "linked": ""})
	a := h.apply(w, ApplyRequest{})
	if !slices.Equal(a.Merged, []string{"merge"}) {
		t.Errorf("merged: %+v", a)
	}
	now := has(t, h.Project)
	if now["merge"] != "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" || now["typed"] != "->easy" || now["under/x"] != "there\n" || now["deleted-there"] != "" {
		t.Errorf("%q", now)
	}
}

// TestFoldersAndFiles: a folder becomes a file and a file a folder.
func TestFoldersAndFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"was-dir/a/b": "x\n", "was-dir/c": "x\n", "was-file": "x\n", "deep/er/only": "x\n"})
	w, work := h.enter("")
	for _, name := range []string{"was-dir", "was-file", "deep"} {
		if err := os.RemoveAll(filepath.Join(work.Root, name)); err != nil {
			t.Fatal(err)
		}
	}
	puts(t, work.Root, map[string]string{"was-dir": "file\n", "was-file/x/y": "file\n"})
	h.apply(w, ApplyRequest{})
	same(t, "project", has(t, h.Project), map[string]string{"was-dir": "file\n", "was-file/x/y": "file\n"})
	if _, err := os.Stat(filepath.Join(h.Project, "deep")); err == nil {
		t.Error("an empty folder was left")
	}
}

// TestChildren: a workspace of a child begins with its parent's files and is applied there.
func TestChildren(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	parent, above := h.enter("")
	puts(t, above.Root, map[string]string{"a": "parent\n", "b": "parent\n"})
	child, below := h.enter(parent.Name)
	same(t, "child", has(t, below.Root), map[string]string{"a": "parent\n", "b": "parent\n"})
	puts(t, below.Root, map[string]string{"a": "child\n"})
	if c, err := h.Changes(t.Context(), child); err != nil || c.Count() != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	h.apply(child, ApplyRequest{Into: &parent})
	same(t, "parent", has(t, above.Root), map[string]string{"a": "child\n", "b": "parent\n"})
	same(t, "project", has(t, h.Project), map[string]string{"a": "x\n"})
	if err := h.Remove(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	puts(t, below.Root, map[string]string{"a": "again\n"})
	if d, err := h.Diff(t.Context(), child, DiffRequest{}); err != nil || !strings.Contains(d.Text, "-child\n+again\n") {
		t.Errorf("after the parent's is gone: %+v, %v", d, err)
	}
}

// TestCopies: the workspace of a copy begins with what the other one had changed, and is
// applied with it, whether that one has been applied meanwhile or not.
func TestCopies(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, name := range []string{"not applied", "applied before", "applied and gone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.base(map[string]string{"a": "x\n", "b": "x\n", "goes": "x\n"})
			is := thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
			_, source, leave, err := h.Enter(t.Context(), is)
			if err != nil {
				t.Fatal(err)
			}
			puts(t, source.Root, map[string]string{"a": "source\n", "b": "source\n", "goes": "", "sub/made": "source\n"})
			if name == "applied and gone" {
				leave()
				h.apply(is, ApplyRequest{})
			}
			copied, work := h.enterNamed(*is.Copy("d/t-2", nil))
			puts(t, work.Root, map[string]string{"a": "copy\n", "sub/made": "copy\n"})
			want := map[string]string{"a": "copy\n", "b": "source\n", "sub/made": "copy\n"}
			same(t, "copy", has(t, work.Root), want)
			if name == "applied before" {
				h.apply(is, ApplyRequest{})
			}
			changed := 4
			if name == "applied and gone" {
				changed = 2
			}
			if c, err := h.Changes(t.Context(), copied); err != nil || c.Count() != changed {
				t.Errorf("%+v, %v", c, err)
			}
			h.apply(copied, ApplyRequest{})
			same(t, "project", has(t, h.Project), want)

			// A change that a person makes after that counts as theirs again.
			puts(t, work.Root, map[string]string{"a": "copy 2\n"})
			puts(t, h.Project, map[string]string{"a": "source\n"})
			if _, err := h.Apply(t.Context(), copied, ApplyRequest{}); !errors.As(err, new(*ConflictError)) {
				t.Errorf("the person's file is overwritten: %v", err)
			}
		})
	}
}

// TestCopyOfParents: the copy of a thread that works in the tree of the thread which asks
// is applied there, and only what it does itself counts.
func TestCopyOfParents(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	parent, above := h.enter("")
	puts(t, above.Root, map[string]string{"a": "parent\n"})
	copied, work := h.enterNamed(*parent.Copy("d/t-2", &parent))
	puts(t, work.Root, map[string]string{"b": "copy\n"})
	if c, err := h.Changes(t.Context(), copied); err != nil || c.Count() != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	puts(t, above.Root, map[string]string{"a": "parent 2\n"})
	h.apply(copied, ApplyRequest{Into: &parent})
	same(t, "parent", has(t, above.Root), map[string]string{"a": "parent 2\n", "b": "copy\n"})
}

// TestTidy: a workspace goes when nothing has changed in it and nobody works there.
func TestTidy(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	w := thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
	w, work, leave, err := h.Enter(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	tidy := func(want bool) {
		t.Helper()
		if gone, err := h.Tidy(t.Context(), w); gone != want || err != nil {
			t.Errorf("tidy %v, %v; want %v", gone, err, want)
		}
	}
	tidy(false)
	puts(t, work.Root, map[string]string{"a": "y\n"})
	leave()
	tidy(false)
	if a := h.apply(w, ApplyRequest{}); !a.Removed {
		t.Errorf("%+v", a)
	}
	tidy(true)
	if _, err := h.Changes(t.Context(), w); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "applied") {
		t.Errorf("after it was applied: %v", err)
	}
	puts(t, h.Project, map[string]string{"b": "more\n"})
	_, work, leave, err = h.Enter(t.Context(), w) // the thread is resumed
	if err != nil {
		t.Fatal(err)
	}
	same(t, "again", has(t, work.Root), map[string]string{"a": "y\n", "b": "more\n"})
	leave()
	if k, err := h.Kept(); err != nil || k.Workspaces != 1 || k.Bytes == 0 {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := h.Sweep(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if k, err := h.Kept(); err != nil || k.Workspaces != 0 {
		t.Errorf("%+v, %v", k, err)
	}
	stateless := Local{User: h.User, Seal: func() *place.Seal { return nil }}
	if k, err := stateless.Kept(); err != nil || k != (Kept{}) {
		t.Errorf("without a state: %+v, %v", k, err)
	}
}

// TestVanishing: files that are removed while a workspace is made, and what another process is
// applying, are not in it.
func TestVanishing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n", "b": "x\n"})
	puts(t, h.Project, map[string]string{"new-a": "x\n", "new-b": "x\n", draftPrefix + "0-0": "half", "dir/" + draftPrefix + "0-1-old": "half"})
	for i, name := range []string{"a", "new-a"} { // when the one behind it is looked at
		h.LeftOut = func(path string) bool {
			if path == []string{"b", "new-b"}[i] {
				puts(t, h.Project, map[string]string{name: ""})
			}
			return false
		}
		_, work := h.enter("")
		if i == 0 {
			same(t, name, has(t, work.Root), map[string]string{"b": "x\n", "new-a": "x\n", "new-b": "x\n"})
		} else {
			same(t, name, has(t, work.Root), map[string]string{"b": "x\n", "new-b": "x\n"})
		}
	}
}
