package workspace

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// machines are two with a checkout of a project each, and what travels between them.
func machines(t *testing.T) (here, there *house, sent map[string][]byte) {
	t.Helper()
	here = newHouse(t)
	here.base(map[string]string{"kept": "one\n", "dir/gone": "gone\n"})
	here.git("update-ref", "refs/remotes/origin/main", "HEAD")
	there = houseAt(t, realDir(t), realDir(t))
	there.git("init", "-q", "-b", "main")
	there.git("fetch", "-q", here.Project, "main")
	there.git("reset", "-q", "--hard", "FETCH_HEAD")
	sent = map[string][]byte{}
	for _, h := range []*house{here, there} {
		h.Bundles = func(_ thread.ID, name string) ([]byte, error) { return sent[name], nil }
	}
	return here, there, sent
}

// pack packs a new workspace, and sends it.
func (h *house) pack(sent map[string][]byte) thread.Workspace {
	h.t.Helper()
	w, data, err := h.Pack(h.t.Context(), thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "dir/a-1"})
	if err != nil || w.Bundle == "" {
		h.t.Fatalf("packed as %+v: %v", w, err)
	}
	sent[w.Bundle] = data
	return w
}

// TestTravel: a workspace begins elsewhere with what it was packed with, and comes back with
// what was done there. Neither repository gets anything of it.
func TestTravel(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here, there, sent := machines(t)
	here.base(map[string]string{"later": "not pushed\n"})
	puts(t, here.Project, map[string]string{"kept": "one\nuncommitted\n", "untracked": "new\n"})
	if err := os.Remove(filepath.Join(here.Project, "dir", "gone")); err != nil {
		t.Fatal(err)
	}
	refs := here.git("for-each-ref") + here.status()
	w := here.pack(sent)
	if head, _, err := readBundle(sent[w.Bundle]); err != nil || len(head.needs) != 1 || len(head.commits) != 1 {
		t.Errorf("the bundle is %+v, %v: it is to follow what a remote has", head, err)
	}
	refsThere := there.git("for-each-ref") + there.status()
	now, work := there.enterNamed(w)
	if now.Baseline != w.Baseline {
		t.Errorf("it begins with %+v, not %+v", now, w)
	}
	same(t, "the files", has(t, work.Root), map[string]string{"kept": "one\nuncommitted\n", "untracked": "new\n", "later": "not pushed\n"})
	if branch := strings.TrimSpace(there.gitIn(work.Root, "symbolic-ref", "HEAD")); branch != "refs/heads/rye/dir/a-1" {
		t.Errorf("the branch is %q", branch)
	}

	puts(t, work.Root, map[string]string{"kept": "one\nuncommitted\ndone\n", "made": "made\n"})
	left, data, err := there.PackResult(t.Context(), now)
	if err != nil || len(data) == 0 {
		t.Fatalf("left as %+v: %v", left, err)
	}
	sent[left.ResultBundle] = data
	for range 2 { // to receive it again changes nothing
		if err := here.Receive(t.Context(), left); err != nil {
			t.Fatal(err)
		}
	}
	if got := refs; got != here.git("for-each-ref")+here.status() {
		t.Errorf("the repository here was %s", got)
	}
	if got := refsThere; got != there.git("for-each-ref")+there.status() {
		t.Errorf("the repository there was %s", got)
	}
	if diff, err := here.Diff(t.Context(), left, DiffRequest{}); err != nil || diff.Added != 1 || diff.Modified != 1 || diff.Deleted != 0 {
		t.Errorf("it is shown as %+v, %v", diff, err)
	}
	if applied := here.apply(left, ApplyRequest{}); !applied.Removed {
		t.Errorf("applied as %+v", applied)
	}
	same(t, "the project", has(t, here.Project), map[string]string{"kept": "one\nuncommitted\ndone\n", "untracked": "new\n", "later": "not pushed\n", "made": "made\n"})
	if _, err := here.Diff(t.Context(), left, DiffRequest{}); !isMissing(err) {
		t.Errorf("it is shown again: %v", err)
	}
	if err := here.Receive(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Diff(t.Context(), left, DiffRequest{}); !isMissing(err) {
		t.Errorf("it came again after it was applied: %v", err)
	}
}

// TestTravelWhole: where no remote has anything the history travels, and nothing is needed.
func TestTravelWhole(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here, there, sent := machines(t)
	here.git("update-ref", "-d", "refs/remotes/origin/main")
	here.base(map[string]string{"later": "not pushed\n"})
	w := here.pack(sent)
	if head, _, err := readBundle(sent[w.Bundle]); err != nil || len(head.needs) != 0 {
		t.Errorf("the bundle is %+v, %v", head, err)
	}
	if _, work := there.enterNamed(w); has(t, work.Root)["later"] != "not pushed\n" {
		t.Errorf("the files are %v", has(t, work.Root))
	}
}

// TestTravelNot: on one machine nothing is packed.
func TestTravelNot(t *testing.T) {
	t.Parallel()
	here, _, _ := machines(t)
	here.Bundles = nil
	w := thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "a-1"}
	if now, data, err := here.Pack(t.Context(), w); now != w || data != nil || err != nil {
		t.Errorf("packed as %+v, %v", now, err)
	}
}

// TestTravelBehind: files that are here are made anew when the thread has ended elsewhere
// since, unless they have what did not travel.
func TestTravelBehind(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here, there, sent := machines(t)
	puts(t, here.Project, map[string]string{".gitignore": "*.log\n"})
	w := here.pack(sent)
	now, work := there.enterNamed(w)
	end := func(text string) thread.Workspace {
		t.Helper()
		puts(t, work.Root, map[string]string{"kept": text})
		left, data, err := there.PackResult(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		sent[left.ResultBundle] = data
		if err := here.Receive(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		return left
	}
	shows := func(w thread.Workspace, want string) {
		t.Helper()
		if diff, err := here.Diff(t.Context(), w, DiffRequest{}); err != nil || !strings.Contains(diff.Text, "+"+want) {
			t.Errorf("it is shown as %+v, %v", diff, err)
		}
	}
	shows(end("first\n"), "first")
	left := end("second\n")
	shows(left, "second")
	s, err := here.of(left)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{"found.log": "all\n", "logs/deep/a.log": "all\n", "kept.d/b.log": "all\n"}
	puts(t, s.tree(), kept) // which git ignores
	puts(t, work.Root, map[string]string{"logs": "a file by now\n"})
	shows(end("third\n"), "third")
	delete(kept, "logs/deep/a.log")
	for path, text := range kept {
		if got := has(t, s.tree())[path]; got != text {
			t.Errorf("%s is %q", path, got)
		}
	}
	puts(t, s.tree(), map[string]string{"kept": "of this machine\n"})
	shows(end("fourth\n"), "of this machine")
}

// TestAttackIgnoredBehindLink: a workspace of another machine has a link where files lay that git
// ignores. They are not written through it.
func TestAttackIgnoredBehindLink(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here, there, sent := machines(t)
	puts(t, here.Project, map[string]string{".gitignore": "*.log\n"})
	w := here.pack(sent)
	_, work, leave, err := here.Enter(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	puts(t, work.Root, map[string]string{"logs/hooks/x.log": "all\n"})
	leave()
	now, elsewhere := there.enterNamed(w)
	puts(t, elsewhere.Root, map[string]string{"logs": "->../git", "kept": "first\n"})
	left, data, err := there.PackResult(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	sent[left.ResultBundle] = data
	if err := here.Receive(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	s, err := here.of(left)
	if err != nil {
		t.Fatal(err)
	}
	if got := has(t, s.tree()); got["kept"] != "first\n" || got["logs"] != "->../git" {
		t.Errorf("the files are %q", got)
	}
	if _, err := os.Lstat(filepath.Join(s.git(), "hooks", "x.log")); !isMissing(err) {
		t.Errorf("it was written through the link: %v", err)
	}
}

// TestAttackBundle: somebody who can write on the server puts another bundle in the place of a workspace's. It is refused, and leaves nothing in the repository.
func TestAttackBundle(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	tests := map[string]struct {
		change func(here *house, w *thread.Workspace, data []byte) []byte
		code   tool.Code
	}{
		"altered": {func(_ *house, w *thread.Workspace, data []byte) []byte {
			data = bytes.Clone(data)
			data[bytes.IndexByte(data, '\n')+len("\n-")+len(w.Baseline)+1] ^= 1 // in a comment: git would take it
			return data
		}, tool.CodeIntegrity},
		"none": {func(*house, *thread.Workspace, []byte) []byte { return nil }, tool.CodeIntegrity},
		"its pack altered, and named anew": {func(_ *house, w *thread.Workspace, data []byte) []byte {
			data = bytes.Clone(data)
			data[len(data)-30] ^= 1
			w.Bundle = nameOf(data)
			return data
		}, tool.CodeIntegrity},
		"of another commit": {func(_ *house, w *thread.Workspace, data []byte) []byte {
			w.Baseline = strings.Repeat("a", len(w.Baseline))
			w.Base = w.Baseline
			return data
		}, tool.CodeIntegrity},
		"with another ref": {func(h *house, w *thread.Workspace, data []byte) []byte {
			data = bytes.Replace(data, []byte(w.Baseline), []byte(h.head()+" refs/heads/main\n"+w.Baseline), 1)
			w.Bundle = nameOf(data)
			return data
		}, tool.CodeIntegrity},
		"out of its folder": {func(_ *house, w *thread.Workspace, data []byte) []byte {
			w.Prefix = "../.."
			return data
		}, tool.CodeIntegrity},
		"with a git folder in its tree": {func(h *house, w *thread.Workspace, _ []byte) []byte {
			return h.evil(w, ".git", "config")
		}, tool.CodeIntegrity},
		"with the state of threads": {func(h *house, w *thread.Workspace, _ []byte) []byte {
			return h.evil(w, ".ai", "state")
		}, tool.CodeIntegrity},
		"with a commit that git makes for nobody": {func(h *house, w *thread.Workspace, _ []byte) []byte {
			return h.nameless(w)
		}, tool.CodeIntegrity},
		"of a history that is not here": {func(h *house, w *thread.Workspace, data []byte) []byte {
			head, _, err := readBundle(data)
			if err != nil {
				h.t.Fatal(err)
			}
			data = bytes.Replace(data, []byte("-"+head.needs[0]), []byte("-"+strings.Repeat("b", 40)), 1)
			w.Bundle = nameOf(data)
			return data
		}, tool.CodeUnsupported},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there, sent := machines(t)
			here.base(map[string]string{"later": "not pushed\n"})
			w := here.pack(sent)
			data := test.change(here, &w, sent[w.Bundle])
			sent[w.Bundle] = data
			refs := there.git("for-each-ref") + there.git("count-objects", "-v")
			_, _, leave, err := there.Enter(t.Context(), w)
			if err == nil {
				leave()
			}
			if f := tool.AsFault(err); err == nil || f.Code != test.code {
				t.Errorf("it is %v", err)
			}
			if now := there.git("for-each-ref") + there.git("count-objects", "-v"); now != refs {
				t.Errorf("the repository has\n%s, and had\n%s", now, refs)
			}
		})
	}
}

func (h *house) head() string { return strings.TrimSpace(h.git("rev-parse", "HEAD")) }

// nameless is a bundle of a commit without author and committer, which git reads and its own
// checks refuse.
func (h *house) nameless(w *thread.Workspace) []byte {
	h.t.Helper()
	file := filepath.Join(realDir(h.t), "commit")
	put(h.t, file, "tree "+h.git("rev-parse", "HEAD^{tree}")+"\n\nx\n")
	w.Baseline = h.git("hash-object", "-t", "commit", "-w", "--literally", file)
	return h.bundled(w)
}

// bundled is a bundle of the commit that a workspace is to begin with.
func (h *house) bundled(w *thread.Workspace) []byte {
	h.t.Helper()
	w.Base = w.Baseline
	h.git("update-ref", "refs/heads/evil", w.Baseline)
	file := filepath.Join(realDir(h.t), "bundle")
	h.git("bundle", "create", "--quiet", file, "refs/heads/evil")
	data, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	w.Bundle = nameOf(data)
	return data
}

// evil is a bundle of a tree that git makes for nobody, with a file in a folder.
func (h *house) evil(w *thread.Workspace, folder, name string) []byte {
	h.t.Helper()
	in := func(stdin string, args ...string) string {
		h.t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = h.Project, strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			h.t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	blob := in("[core]\n", "hash-object", "-w", "--stdin")
	inner := in("100644 blob "+blob+"\t"+name+"\n", "mktree")
	tree := in("040000 tree "+inner+"\t"+folder+"\n", "mktree")
	w.Baseline = in("", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit-tree", tree, "-m", "x")
	return h.bundled(w)
}
