package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestKinds: repositories in every shape that people have, and projects that are none.
func TestKinds(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	t.Run("no repository", func(t *testing.T) {
		t.Parallel()
		h := houseAt(t, realDir(t), realDir(t))
		h.refused("the project is no git repository")
	})
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		h := houseAt(t, realDir(t), realDir(t))
		h.git("init", "-q", "--bare")
		h.refused("it is a bare one")
	})
	t.Run("no git", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t)
		h.Program = filepath.Join(t.TempDir(), "git")
		h.refused("git is not installed")
	})
	t.Run("before the first commit", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t)
		puts(t, h.Project, map[string]string{"a": "x\n"})
		h.works()
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		newHouse(t).works()
	})
	t.Run("shallow", func(t *testing.T) {
		t.Parallel()
		from := newHouse(t)
		from.base(map[string]string{"a": "x\n"})
		from.base(map[string]string{"a": "y\n"})
		h := houseAt(t, realDir(t), from.User)
		h.git("clone", "-q", "--depth=1", "file://"+from.Project, ".")
		_, work := h.works()
		if log := h.gitIn(work.Root, "log", "--format=%s"); strings.Count(log, "base") != 1 {
			t.Errorf("log: %s", log)
		}
	})
	t.Run("a linked worktree", func(t *testing.T) {
		t.Parallel()
		from := newHouse(t)
		from.base(map[string]string{"a": "x\n"})
		linked := filepath.Join(realDir(t), "linked")
		from.git("worktree", "add", "-q", "-b", "side", linked)
		h := houseAt(t, linked, from.User)
		h.works()
	})
	t.Run("SHA-256", func(t *testing.T) {
		t.Parallel()
		h := houseAt(t, realDir(t), realDir(t))
		h.git("init", "-q", "--object-format=sha256")
		h.base(map[string]string{"a": "x\n"})
		h.works()
	})
	t.Run("line ends and modes of another system", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t)
		h.git("config", "core.autocrlf", "true")
		h.git("config", "core.filemode", "false")
		h.base(map[string]string{"a": "x\r\n", ".gitattributes": "* text=auto\n"})
		if err := os.Chmod(filepath.Join(h.Project, "a"), 0o755); err != nil {
			t.Fatal(err)
		}
		h.works()
	})
	t.Run("a conflict in the index", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t)
		h.base(map[string]string{"a": "x\n"})
		h.git("checkout", "-q", "-b", "side")
		h.base(map[string]string{"a": "y\n"})
		h.git("checkout", "-q", "main")
		h.base(map[string]string{"a": "z\n"})
		_, _ = h.try("merge", "side")
		h.works()
	})
}

// refused wants no workspace to be possible, with what is wrong and what else can be done.
func (h *house) refused(why string) {
	h.t.Helper()
	err := h.Check(h.t.Context(), thread.Workspace{})
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || !strings.Contains(f.Message, why) || f.Hint == "" {
		h.t.Errorf("%v; want %q and a hint", err, why)
	}
}

// works makes a workspace, changes a file in it, and applies it.
func (h *house) works() (thread.Workspace, tool.Work) {
	h.t.Helper()
	if err := h.Check(h.t.Context(), thread.Workspace{}); err != nil {
		h.t.Fatal(err)
	}
	w, work := h.enter("")
	want := has(h.t, h.Project)
	same(h.t, "workspace", has(h.t, work.Root), want)
	puts(h.t, work.Root, map[string]string{"made": "here\n"})
	if a := h.apply(w, ApplyRequest{}); a.Count() != 1 || a.Added != 1 {
		h.t.Errorf("applied %+v", a)
	}
	want["made"] = "here\n"
	same(h.t, "project", has(h.t, h.Project), want)
	return w, work
}

// TestFolderOfARepository: the whole repository is in the workspace of a project that is a
// folder of it; changes beside that folder are told, kept, and not applied.
func TestFolderOfARepository(t *testing.T) {
	t.Parallel()
	top := newHouse(t)
	top.base(map[string]string{"lib/l": "x\n", "app/a": "x\n", "app/deep/b": "x\n"})
	h := houseAt(t, filepath.Join(top.Project, "app"), top.User)
	w, work := h.enter("")
	if work.Root != filepath.Join(work.Tree, "app") {
		t.Errorf("%+v", work)
	}
	same(t, "tree", has(t, work.Tree), has(t, top.Project))
	puts(t, work.Tree, map[string]string{"app/a": "y\n", "app/new": "y\n", "lib/l": "y\n"})
	d, err := h.Diff(t.Context(), w, DiffRequest{})
	if err != nil || len(d.Files) != 2 || d.Files[0].Path != "a" || len(d.Outside) != 1 || strings.Contains(d.Text, "lib/l") || !strings.Contains(d.Text, "+++ b/a\n") || d.Files[0].Added != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if one, err := h.Diff(t.Context(), w, DiffRequest{Path: filepath.Join(h.Project, "new")}); err != nil || len(one.Files) != 1 || strings.Contains(one.Text, "b/a") {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := h.Diff(t.Context(), w, DiffRequest{Path: "../lib"}); err == nil {
		t.Error("a path outside the project is shown")
	}
	if a := h.apply(w, ApplyRequest{}); a.Count() != 2 || a.Note == "" || a.Removed {
		t.Errorf("%+v", a)
	}
	same(t, "repository", has(t, top.Project), map[string]string{"lib/l": "x\n", "app/a": "y\n", "app/new": "y\n", "app/deep/b": "x\n"})
}

// TestOddFiles: repositories in the project, submodules, pipes, links out of it and names of
// every kind do not keep a workspace from being made.
func TestOddFiles(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h, other := newHouse(t), newHouse(t)
	other.base(map[string]string{"in": "x\n"})
	odd := "odd \"name\"\n\t*?é"
	h.base(map[string]string{odd: "x\n", "out": "->/etc/passwd", "gone/x": "x\n"})
	h.git("submodule", "add", "-q", other.Project, "module")
	h.git("clone", "-q", other.Project, "nested")
	if err := errors.Join(syscall.Mkfifo(filepath.Join(h.Project, "pipe"), 0o600), os.RemoveAll(filepath.Join(h.Project, "gone")), os.Symlink(h.User, filepath.Join(h.Project, "gone"))); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(h.User, "x"), "behind a link\n")
	w, work := h.enter("")
	got := has(t, work.Root)
	if got[odd] != "x\n" || got["out"] != "->/etc/passwd" || got["gone"] != "->"+h.User || got["module/in"]+got["nested/in"]+got["gone/x"] != "" {
		t.Errorf("%q", got)
	}
	h.gitIn(work.Root, "clone", "-q", other.Project, "own")
	puts(t, work.Root, map[string]string{odd: "y\n"})
	d, err := h.Diff(t.Context(), w, DiffRequest{})
	if err != nil || len(d.Files) != 1 || len(d.Left) != 1 || d.Left[0] != "own" {
		t.Errorf("%+v, %v", d, err)
	}
	h.apply(w, ApplyRequest{})
	if now := has(t, h.Project); now[odd] != "y\n" {
		t.Errorf("%q", now)
	}
	if err := os.Chmod(filepath.Join(h.Project, odd), 0); err != nil || os.Geteuid() == 0 {
		return // a user who may read everything sees no error
	}
	_, _, _, err = h.Enter(t.Context(), thread.Workspace{Type: "worktree", Name: thread.NewWorkspaceName()})
	if err == nil || !strings.Contains(err.Error(), "Permission denied") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestPages: a long difference is shown page by page, every line once.
func TestPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": strings.Repeat("before\n", 3000)})
	w, work := h.enter("")
	puts(t, work.Root, map[string]string{"a": strings.Repeat("after\n", 3000)})
	lines, pages := 0, 0
	for offset := 1; offset > 0; pages++ {
		d, err := h.Diff(t.Context(), w, DiffRequest{Offset: offset})
		if err != nil || tool.SizeInJSON(d.Text) > DiffRoom || pages > 50 {
			t.Fatalf("page at %d: %d bytes, %v", offset, len(d.Text), err)
		}
		lines += strings.Count(d.Text, "\n-before") + strings.Count(d.Text, "\n+after")
		if strings.HasPrefix(d.Text, "-before") || strings.HasPrefix(d.Text, "+after") {
			lines++
		}
		offset = d.Next
	}
	if lines != 6000 || pages < 3 {
		t.Errorf("%d lines on %d pages", lines, pages)
	}
	if d, err := h.Diff(t.Context(), w, DiffRequest{Offset: 1 << 30}); err != nil || d.Text != "" || !strings.Contains(d.Note, "past the end") {
		t.Errorf("past the end: %+v, %v", d, err)
	}
	if d, err := h.Diff(t.Context(), w, DiffRequest{Path: "b"}); err != nil || d.Text != "" || !strings.Contains(d.Note, "nothing has changed at this path") {
		t.Errorf("another path: %+v, %v", d, err)
	}
}

// TestAttackNamesOfFiles: a thread makes files whose names have line breaks and what a terminal obeys, to say something in the name of the program.
// Outcomes, differences and conflicts show those characters by their numbers.
func TestAttackNamesOfFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	w, work := h.enter("")
	name := "a\nM b\x1b[2J\u202e"
	puts(t, work.Root, map[string]string{name: "y\n"})
	puts(t, h.Project, map[string]string{name: "z\n"})
	const shown = "a<U+000A>M b<U+001B>[2J<U+202E>"
	if c, err := h.Changes(t.Context(), w); err != nil || len(c.Files) != 1 || c.Files[0] != "A "+shown {
		t.Errorf("%q, %v", c.Files, err)
	}
	if d, err := h.Diff(t.Context(), w, DiffRequest{}); err != nil || len(d.Files) != 1 || d.Files[0].Path != shown {
		t.Errorf("%+v, %v", d.Files, err)
	}
	_, err := h.Apply(t.Context(), w, ApplyRequest{})
	if conflict, is := errors.AsType[*ConflictError](err); !is || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != shown {
		t.Errorf("%v", err)
	}
}
