package workspace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// killingGit is a git whose command of a number has locked the index it was given, and kills
// its caller. The count of the commands is in a file.
func killingGit(t *testing.T, on int) string {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := realDir(t)
	script := fmt.Sprintf(`#!/bin/sh
echo >>%[1]q
if [ "$(wc -l <%[1]q)" -eq %[2]d ]; then
	[ -z "$GIT_INDEX_FILE" ] || : >"$GIT_INDEX_FILE.lock"
	kill -9 $PPID
	exec sleep 60
fi
exec %[3]q "$@"
`, filepath.Join(dir, "count"), on, real)
	program := filepath.Join(dir, "git")
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// TestKilledInGit kills a process in each command of git that making a workspace, looking
// at it, and applying it runs. The next operation does what it would have done.
func TestKilledInGit(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, do := range map[string]order{
		"make": {Write: map[string]string{"c": "y\n"}}, "look": {Look: true}, "apply": {Apply: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for on := 1; ; on++ {
				h, o := processHouse(t)
				h.base(map[string]string{"a": "x\n", "b": "x\n"})
				o.Write, o.Look, o.Apply, o.Program = do.Write, do.Look, do.Apply, killingGit(t, on)
				o.Workspace = thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
				if name != "make" {
					_, work := h.enterNamed(o.Workspace)
					puts(t, work.Root, map[string]string{"a": "y\n", "new": "y\n", "b": ""})
				}
				if !h.process(o) {
					if on < 4 {
						t.Errorf("%d commands of git", on-1)
					}
					return
				}
				_, work := h.enterNamed(o.Workspace)
				puts(t, work.Root, map[string]string{"a": "y\n", "new": "y\n", "b": ""})
				changes, err := h.Changes(t.Context(), o.Workspace)
				if err != nil || changes.Added != 1 || changes.Modified != 1 || changes.Deleted != 1 {
					t.Errorf("killed in command %d: %+v, %v", on, changes, err)
					continue
				}
				h.apply(o.Workspace, ApplyRequest{})
				same(t, fmt.Sprint("killed in command ", on), has(t, h.Project), map[string]string{"a": "y\n", "new": "y\n"})
			}
		})
	}
}

// TestLocksOfKilledGit: a command of a thread was killed while it changed the git folder of
// its workspace. The next that works there can commit; a mere look takes nobody's lock away.
func TestLocksOfKilledGit(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.base(map[string]string{"a": "x\n"})
	w := thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
	enter := func() (leave func()) {
		t.Helper()
		_, _, leave, err := h.Enter(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	leave := enter()
	s, err := h.of(w)
	if err != nil {
		t.Fatal(err)
	}
	locks := []string{"index.lock", "HEAD.lock", "refs/heads/" + w.Branch() + ".lock"}
	for _, name := range locks {
		put(t, filepath.Join(s.git(), name), "")
	}
	there := func() (there int) {
		for _, name := range locks {
			if _, err := os.Lstat(filepath.Join(s.git(), name)); err == nil {
				there++
			}
		}
		return there
	}
	other := enter()
	if _, err := h.Changes(t.Context(), w); err != nil || there() != len(locks) {
		t.Errorf("while somebody works there %d of %d locks are left: %v", there(), len(locks), err)
	}
	other()
	leave()
	defer enter()()
	if there() != 0 {
		t.Errorf("%d locks of nobody are left", there())
	}
	put(t, filepath.Join(s.tree(), "a"), "y\n")
	h.gitIn(s.tree(), "commit", "-q", "-a", "-m", "done")
}
