package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// hostileConfig makes git run a program wherever a configuration can name one.
const hostileConfig = `
[core]
	fsmonitor = "PROGRAM"
	hooksPath = "HOOKS"
	pager = "PROGRAM"
	editor = "PROGRAM"
	sshCommand = "PROGRAM"
	attributesFile = "ATTRIBUTES"
	alternateRefsCommand = "PROGRAM"
[diff]
	external = "PROGRAM"
[diff "evil"]
	command = "PROGRAM"
	textconv = "PROGRAM"
[filter "evil"]
	clean = "PROGRAM"
	smudge = "PROGRAM"
	process = "PROGRAM"
	required = true
[merge "evil"]
	driver = "PROGRAM"
[merge]
	default = evil
[credential]
	helper = "!PROGRAM"
[commit]
	gpgSign = true
[gpg]
	program = "PROGRAM"
[alias]
	ls-files = "!PROGRAM"
	diff-tree = "!PROGRAM"
[remote "origin"]
	url = "ext::PROGRAM"
	promisor = true
[extensions]
	partialClone = origin
[submodule]
	recurse = true
[include]
	path = INCLUDED
[includeIf "gitdir:/"]
	path = INCLUDED
`

// arm has a repository run a program that leaves a file, in every way there is.
func (h *house) arm() (ran string) {
	h.t.Helper()
	dir := h.t.TempDir()
	ran = filepath.Join(dir, "ran")
	program, git := filepath.Join(dir, "evil"), filepath.Join(h.Project, ".git")
	script := "#!/bin/sh\necho \"$0 $*\" >>'" + ran + "'\ncat 2>/dev/null\nexit 0\n"
	attributes := "* diff=evil filter=evil merge=evil text eol=crlf ident working-tree-encoding=UTF-16\n"
	config := strings.NewReplacer("PROGRAM", program, "HOOKS", filepath.Join(git, "hooks"), "ATTRIBUTES", filepath.Join(git, "info", "attributes"), "INCLUDED", filepath.Join(git, "included")).Replace(hostileConfig)
	old, err := os.ReadFile(filepath.Join(git, "config"))
	if err != nil {
		h.t.Fatal(err)
	}
	for path, text := range map[string]string{
		program: script, filepath.Join(git, "config"): string(old) + config, filepath.Join(git, "included"): "[core]\n\tfsmonitor = " + program + "\n",
		filepath.Join(git, "info", "attributes"): attributes, filepath.Join(h.Project, ".gitattributes"): attributes,
	} {
		put(h.t, path, text)
	}
	for _, name := range []string{"post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-commit", "post-commit", "pre-applypatch", "post-applypatch", "post-merge"} {
		put(h.t, filepath.Join(git, "hooks", name), script)
		if err := os.Chmod(filepath.Join(git, "hooks", name), 0o700); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := os.Chmod(program, 0o700); err != nil {
		h.t.Fatal(err)
	}
	return ran
}

// TestAttackWorkspaceRuns: hooks, filters, monitors, drivers, includes and aliases of a repository name a program, and a thread gets a workspace there, whose changes are shown, merged and applied. The program does not run, and every file is byte for byte what it was.
func TestAttackWorkspaceRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "b": "x\r\n$Id$\n"})
	ran := h.arm()
	w, work := h.enter("")
	same(t, "workspace", has(t, work.Root), has(t, h.Project))
	puts(t, work.Root, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n8\n9\n", "b": "y\r\n$Id$\n", "c": "new\n"})
	puts(t, h.Project, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"})
	if d, err := h.Diff(t.Context(), w, DiffRequest{}); err != nil || len(d.Files) != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	h.apply(w, ApplyRequest{})
	now := has(t, h.Project)
	if now["a"] != "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" || now["b"] != "y\r\n$Id$\n" || now["c"] != "new\n" {
		t.Errorf("%q", now)
	}
	if said, err := os.ReadFile(ran); err == nil {
		t.Errorf("it ran: %s", said)
	}
	cmd := exec.Command("git", "-C", h.Project, "status") // the trap works for a person
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	_ = cmd.Run() // it need not succeed
	if _, err := os.Stat(ran); err != nil {
		t.Error("the trap is none")
	}
}

// TestAttackPointer: a thread puts another repository in the place of its .git, which runs a program and has other files. Its changes are what they are in its own, and nothing runs.
func TestAttackPointer(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	w, work := h.enter("")
	evil := newHouse(t)
	evil.base(map[string]string{"secret": "of another\n"})
	ran := evil.arm()
	for _, pointer := range []func() error{
		func() error {
			return os.WriteFile(filepath.Join(work.Tree, ".git"), []byte("gitdir: "+filepath.Join(evil.Project, ".git")+"\n"), 0o600)
		},
		func() error {
			return errors.Join(os.Remove(filepath.Join(work.Tree, ".git")), os.Symlink(filepath.Join(evil.Project, ".git"), filepath.Join(work.Tree, ".git")))
		},
		func() error {
			return errors.Join(os.Remove(filepath.Join(work.Tree, ".git")), os.CopyFS(filepath.Join(work.Tree, ".git"), os.DirFS(filepath.Join(evil.Project, ".git"))))
		},
	} {
		if err := pointer(); err != nil {
			t.Fatal(err)
		}
		puts(t, work.Root, map[string]string{"a": "y\n"})
		if c, err := h.Changes(t.Context(), w); err != nil || len(c.Files) != 1 || c.Files[0] != "M a" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	h.apply(w, ApplyRequest{})
	same(t, "project", has(t, h.Project), map[string]string{"a": "y\n"})
	if said, err := os.ReadFile(ran); err == nil {
		t.Errorf("it ran: %s", said)
	}
}

// TestAttackLinks: a thread makes links out of its workspace, puts one in the place of a folder, and has its changes applied where the project has such a link too. No file outside is read, shown or written.
func TestAttackLinks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"dir/x": "x\n", "keep": "x\n", "way/y": "x\n"})
	w, work := h.enter("")
	outside := t.TempDir()
	put(t, filepath.Join(outside, "secret"), "s3cret\n")
	if err := os.RemoveAll(filepath.Join(work.Root, "dir")); err != nil {
		t.Fatal(err)
	}
	puts(t, work.Root, map[string]string{"dir": "->" + outside, "up": "->../../git/config", "by": "->keep/../../../../x", "fine": "->keep", "way/y": "changed\n"})
	d, err := h.Diff(t.Context(), w, DiffRequest{})
	if err != nil || strings.Contains(d.Text, "s3cret") {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = h.Apply(t.Context(), w, ApplyRequest{})
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || !conflict.PersonOnly() || len(conflict.Conflicts) != 3 {
		t.Errorf("%v: %+v", err, conflict)
	}
	puts(t, work.Root, map[string]string{"dir": "", "up": "", "by": ""})
	if err := errors.Join(os.RemoveAll(filepath.Join(h.Project, "way")), os.Symlink(outside, filepath.Join(h.Project, "way"))); err != nil {
		t.Fatal(err)
	}
	if _, err = h.Apply(t.Context(), w, ApplyRequest{}); !errors.As(err, &conflict) || conflict.Conflicts[0].Kind != kindInTheWay {
		t.Errorf("a folder of the project that is a link: %v", err)
	}
	same(t, "outside", has(t, outside), map[string]string{"secret": "s3cret\n"})
}

// TestAttackPlanted: a thread puts items, settings of editors and agents, keys, state and a repository into its workspace, under names in every spelling, and has them applied. None is, and they are named; a person who agrees gets what a person may have, and neither state nor keys.
func TestAttackPlanted(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	w, work := h.enter("")
	planted := map[string]string{
		".ai/directives/evil.md": "x\n", ".ai/config/agent/agent.yaml": "x\n", ".claude/settings.json": "{}\n", ".claude/agents/x.md": "x\n", ".vscode/tasks.json": "{}\n",
		".VSCode/Tasks.json": "{}\n", "sub/.mcp.json": "{}\n", ".envrc": "x\n", "bare/HEAD": "ref: refs/heads/main\n", ".idea/x.xml": "x\n", "sub/.cursor/rules": "x\n",
	}
	puts(t, work.Root, planted)
	puts(t, work.Root, map[string]string{".ai/state/threads/x": "x\n", ".ai/config/keys/signing": "x\n", "a": "fine\n"})
	_, err := h.Apply(t.Context(), w, ApplyRequest{})
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || !conflict.PersonOnly() || len(conflict.Conflicts) != len(planted) {
		t.Fatalf("%v: %+v", err, conflict)
	}
	same(t, "project", has(t, h.Project), map[string]string{"a": "x\n"})
	h.apply(w, ApplyRequest{Person: true})
	planted["a"] = "fine\n"
	same(t, "project with a person", has(t, h.Project), planted)
}

// TestAttackWorkspaceName: a name of a workspace that leads to another folder stands in a record. It names nothing, and nothing is made or removed.
func TestAttackWorkspaceName(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	for _, name := range []string{"", ".", "../x", "w../../../../../../tmp/x", strings.ToUpper(thread.NewWorkspaceName()), thread.NewWorkspaceName() + "/..", "--help"} {
		w := thread.Workspace{Type: thread.WorkspaceWorktree, Name: name}
		if _, _, _, err := h.Enter(t.Context(), w); err == nil {
			t.Errorf("%q is a workspace", name)
		}
		if err := h.Remove(t.Context(), w); err == nil {
			t.Errorf("%q is removed", name)
		}
	}
	if entries, err := os.ReadDir(h.User); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestAttackBorrowed: the repository of a project borrows the objects of another one of the person. Those cannot be read from a workspace, which has the files of the project all the same.
func TestAttackBorrowed(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	victim := newHouse(t)
	victim.base(map[string]string{"secret": "of the victim\n"})
	commit := victim.git("rev-parse", "HEAD")
	for name, arm := range map[string]func(h *house) error{
		"alternates": func(h *house) error {
			return os.WriteFile(filepath.Join(h.Project, ".git/objects/info/alternates"), []byte(filepath.Join(victim.Project, ".git/objects")+"\n"), 0o600)
		},
		"a link": func(h *house) error {
			return os.Symlink(filepath.Join(victim.Project, ".git/objects", commit[:2]), filepath.Join(h.Project, ".git/objects", commit[:2]))
		},
	} {
		h := newHouse(t)
		puts(t, h.Project, map[string]string{"a": "x\n"})
		if err := errors.Join(os.MkdirAll(filepath.Join(h.Project, ".git/objects/info"), 0o700), arm(h), os.WriteFile(filepath.Join(h.Project, ".git/refs/heads/main"), []byte(commit+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, work := h.enter("")
		same(t, name, has(t, work.Root), map[string]string{"a": "x\n"})
		out, err := exec.Command("git", "-C", work.Root, "log", "--all", "-p").CombinedOutput()
		if strings.Contains(string(out), "of the victim") {
			t.Errorf("%s: %s, %v", name, out, err)
		}
		if out, err := exec.Command("git", "-C", work.Root, "cat-file", "-p", commit).CombinedOutput(); err == nil {
			t.Errorf("%s: the commit of another is read: %s", name, out)
		}
	}
}

// TestAttackWorkspaceGitInPath: a program called git lies in a folder of the project that is in PATH, and a thread gets a workspace there. Git is the one outside of the project.
func TestAttackWorkspaceGitInPath(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "1\n"})
	bin, ran := filepath.Join(h.Project, ".venv", "bin"), filepath.Join(t.TempDir(), "ran")
	put(t, filepath.Join(bin, "git"), "#!/bin/sh\ntouch '"+ran+"'\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.Environ = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	w, work := h.enter("")
	puts(t, work.Root, map[string]string{"a": "2\n"})
	h.apply(w, ApplyRequest{})
	if now := has(t, h.Project); now["a"] != "2\n" {
		t.Errorf("%q", now)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the project's git has run")
	}
	h.Environ = append(os.Environ(), "PATH="+bin)
	if err := h.Check(t.Context(), thread.Workspace{}); err == nil {
		t.Error("a workspace by the project's git")
	}
}
