package trust_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// put writes a file and the folders above it.
func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// twoSpaces are a project with a settings file and a user space beside it.
func twoSpaces(t testing.TB) resolve.Roots {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roots := resolve.Roots{Project: filepath.Join(dir, "project"), User: filepath.Join(dir, "user")}
	put(t, filepath.Join(roots.Project, ".ai", "config", "agent", "agent.yaml"), "a: 1\n")
	if err := os.MkdirAll(filepath.Join(roots.User, ".ai"), 0o700); err != nil {
		t.Fatal(err)
	}
	return roots
}

func standing(t testing.TB, roots resolve.Roots, want trust.Standing) trust.Project {
	t.Helper()
	p := trust.ProjectOf(roots)
	if p.Standing != want {
		t.Errorf("%s: %s, want %s (%v)", roots.Project, p.Standing, want, p.Fault)
	}
	return p
}

func TestAcceptAndRevoke(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	standing(t, roots, trust.Stranger)
	trusttest.AcceptSettings(t, roots)
	p := standing(t, roots, trust.Accepted)
	if got := string(p.Record.Snapshot().Files["agent/agent.yaml"]); got != "a: 1\n" {
		t.Errorf("the copy is %q", got)
	}
	put(t, filepath.Join(roots.Project, ".ai", "config", "agent", "agent.yaml"), "a: 2\n")
	if got := string(trust.ProjectOf(roots).Record.Files["agent/agent.yaml"]); got != "a: 1\n" {
		t.Errorf("the copy has become %q", got)
	}
	for file, mode := range map[string]fs.FileMode{"trust": 0o700, "trust/projects": 0o700} {
		if info, err := os.Stat(filepath.Join(roots.User, ".ai", file)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if gone, err := trust.Revoke(roots); err != nil || !gone {
		t.Errorf("%t, %v", gone, err)
	}
	standing(t, roots, trust.Stranger)
	if gone, err := trust.Revoke(roots); err != nil || gone {
		t.Errorf("twice: %t, %v", gone, err)
	}
}

// TestDecisions: each decision is kept with its time, and leaves what others have said.
func TestDecisions(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	snapshot, err := trust.Take(roots.Project)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0)
	check := func(what string, err error, want trust.Standing, ok func(r trust.Record) bool) {
		t.Helper()
		p := trust.ProjectOf(roots)
		if err != nil || p.Standing != want || p.Record == nil || p.Record.Project != p.Place || !p.Record.At.Equal(at) || !ok(*p.Record) {
			t.Errorf("%s: %v, %s, %+v", what, err, p.Standing, p.Record)
		}
		at = at.Add(time.Hour)
	}
	check("declined", trust.Decline(roots, snapshot, at), trust.Stranger, func(r trust.Record) bool {
		return r.Declined == snapshot.Digest() && len(r.Files) == 0
	})
	check("followed", trust.Follow(roots, "one", at), trust.Accepted, func(r trust.Record) bool {
		return slices.Equal(r.Follow, []string{"one"}) && len(r.Files) == 0
	})
	check("followed twice", trust.Follow(roots, "one", at), trust.Accepted, func(r trust.Record) bool { return slices.Equal(r.Follow, []string{"one"}) })
	check("followed by another", trust.Follow(roots, "two", at), trust.Accepted, func(r trust.Record) bool { return slices.Equal(r.Follow, []string{"one", "two"}) })
	check("accepted", trust.Accept(roots, snapshot, at), trust.Accepted, func(r trust.Record) bool {
		return r.Declined == "" && len(r.Follow) == 2 && maps.EqualFunc(r.Files, snapshot.Files, bytes.Equal)
	})
	if trust.ProjectOf(roots).Programs() {
		t.Error("programs of the folder count, which nobody has looked at")
	}
	check("accepted whole", trust.AcceptAll(roots, trust.Snapshot{}, at), trust.Accepted, func(r trust.Record) bool { return r.Programs && len(r.Files) == 0 })
	check("settings anew", trust.Accept(roots, snapshot, at), trust.Accepted, func(r trust.Record) bool { return r.Programs })
	check("declined later", trust.Decline(roots, trust.Snapshot{}, at), trust.Accepted, func(r trust.Record) bool {
		return r.Declined == (trust.Snapshot{}).Digest() && len(r.Files) == len(snapshot.Files)
	})
}

// TestOtherPaths: a record is about a folder, by whatever path it is reached.
func TestOtherPaths(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	trusttest.AcceptSettings(t, roots)
	link := filepath.Join(filepath.Dir(roots.Project), "link")
	if err := os.Symlink(roots.Project, link); err != nil {
		t.Fatal(err)
	}
	standing(t, resolve.Roots{Project: link, User: roots.User}, trust.Accepted)
	standing(t, resolve.Roots{Project: roots.Project + "/", User: roots.User}, trust.Accepted)
	standing(t, resolve.Roots{Project: filepath.Join(roots.Project, ".ai"), User: roots.User}, trust.Stranger)
	standing(t, resolve.Roots{Project: roots.Project, User: t.TempDir()}, trust.Stranger)
	standing(t, resolve.Roots{Project: roots.Project}, trust.Nobody)
}

// TestHomeAndAround: the user space is no project, and nothing of a folder around
// it is ever trusted.
func TestHomeAndAround(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	above := filepath.Dir(roots.User)
	link := filepath.Join(above, "link")
	if err := os.Symlink(roots.User, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		project, user string
		want          trust.Standing
	}{
		{roots.User, roots.User, trust.Home},
		{link, roots.User, trust.Home},
		{roots.User, link, trust.Home},
		{above, roots.User, trust.Around},
		{above, link, trust.Around},
		{"/", roots.User, trust.Around},
	} {
		of := resolve.Roots{Project: tt.project, User: tt.user}
		standing(t, of, tt.want)
		if err := trust.Accept(of, trust.Snapshot{}, noon); !errors.Is(err, trust.ErrNotTrustable) {
			t.Errorf("%s is accepted: %v", tt.project, err)
		}
		if err := trust.Follow(of, "c6fcdd042a139020", noon); !errors.Is(err, trust.ErrNotTrustable) {
			t.Errorf("%s follows: %v", tt.project, err)
		}
		standing(t, of, tt.want)
	}
}

// TestRecordsOfOthers: a record that somebody else could have written, or that is
// about another folder, is none.
func TestRecordsOfOthers(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	trusttest.AcceptSettings(t, roots)
	dir := filepath.Join(roots.User, ".ai", "trust", "projects")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	record := filepath.Join(dir, entries[0].Name())
	content, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	fault := func(why string) {
		t.Helper()
		if p := standing(t, roots, trust.Stranger); p.Fault == nil || !strings.Contains(p.Fault.Error(), why) {
			t.Errorf("%v, want %q", p.Fault, why)
		}
	}
	if err := os.Chmod(record, 0o666); err != nil {
		t.Fatal(err)
	}
	fault("everybody can change")
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	put(t, record, strings.Replace(string(content), "/project", "/elsewhere", 1))
	fault("is about")
	put(t, record, "{")
	fault("unexpected end")
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(roots.Project, "record"), string(content))
	if err := os.Symlink(filepath.Join(roots.Project, "record"), record); err != nil {
		t.Fatal(err)
	}
	fault("no plain file")
	trusttest.AcceptSettings(t, roots) // replaces what cannot be used
	standing(t, roots, trust.Accepted)
}

// worktree makes a repository at repo and a linked worktree at tree, as git does.
func worktree(t testing.TB, repo, tree string) (private string) {
	t.Helper()
	private = filepath.Join(repo, ".git", "worktrees", filepath.Base(tree))
	put(t, filepath.Join(private, "commondir"), "../..\n")
	put(t, filepath.Join(private, "gitdir"), filepath.Join(tree, ".git")+"\n")
	put(t, filepath.Join(tree, ".git"), "gitdir: "+private+"\n")
	return private
}

// TestWorktreesShareTrust: a linked worktree has the record of its repository, and
// so has the same folder within it.
func TestWorktreesShareTrust(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	trusttest.AcceptSettings(t, roots)
	sub := resolve.Roots{Project: filepath.Join(roots.Project, "sub"), User: roots.User}
	put(t, filepath.Join(sub.Project, ".ai", "config", "a.yaml"), "b: 1\n")
	trusttest.AcceptSettings(t, sub)
	tree := filepath.Join(filepath.Dir(roots.Project), "tree")
	worktree(t, roots.Project, tree)
	put(t, filepath.Join(tree, "sub", "x"), "")
	put(t, filepath.Join(tree, "other", "x"), "")
	if p := standing(t, resolve.Roots{Project: tree, User: roots.User}, trust.Accepted); p.Place != roots.Project {
		t.Errorf("the record is about %s", p.Place)
	}
	if p := standing(t, resolve.Roots{Project: filepath.Join(tree, "sub"), User: roots.User}, trust.Accepted); p.Record.Files["a.yaml"] == nil {
		t.Error("a folder of the worktree has another record")
	}
	standing(t, resolve.Roots{Project: filepath.Join(tree, "other"), User: roots.User}, trust.Stranger)
}

// TestWorktreesOfGit makes the same with git itself.
func TestWorktreesOfGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	roots := twoSpaces(t)
	tree := filepath.Join(filepath.Dir(roots.Project), "tree")
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "a"},
		{"worktree", "add", "-q", tree},
	} {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Env = roots.Project, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	trusttest.AcceptSettings(t, roots)
	standing(t, resolve.Roots{Project: tree, User: roots.User}, trust.Accepted)
}

// TestAttackBorrowedRepository: a folder has a .git that names a repository whose settings its user has accepted, as a file, as a link, and with files of its own that link back.
// It does not share that trust, for the repository does not name it as a worktree.
func TestAttackBorrowedRepository(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	trusttest.AcceptSettings(t, roots)
	tree := filepath.Join(filepath.Dir(roots.Project), "tree")
	private := worktree(t, roots.Project, tree)
	common := filepath.Join(roots.Project, ".git")
	for name, attack := range map[string]func(dir string){
		"pointer of another worktree": func(dir string) { put(t, filepath.Join(dir, ".git"), "gitdir: "+private+"\n") },
		"pointer to the repository":   func(dir string) { put(t, filepath.Join(dir, ".git"), "gitdir: "+common+"\n") },
		"a link to the repository": func(dir string) {
			put(t, filepath.Join(dir, "x"), "")
			if err := os.Symlink(common, filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		},
		"a private folder of its own": func(dir string) {
			own := filepath.Join(dir, "worktrees", "evil")
			put(t, filepath.Join(own, "gitdir"), filepath.Join(dir, ".git")+"\n")
			put(t, filepath.Join(own, "commondir"), common+"\n")
			put(t, filepath.Join(dir, ".git"), "gitdir: "+own+"\n")
		},
		"a linked private folder": func(dir string) {
			own := filepath.Join(dir, "private")
			put(t, filepath.Join(own, "gitdir"), filepath.Join(dir, ".git")+"\n")
			put(t, filepath.Join(own, "commondir"), common+"\n")
			put(t, filepath.Join(dir, ".git"), "gitdir: "+filepath.Join(dir, "linked")+"\n")
			if err := os.Symlink(own, filepath.Join(dir, "linked")); err != nil {
				t.Fatal(err)
			}
		},
		"a linked pointer": func(dir string) {
			put(t, filepath.Join(dir, "x"), "")
			if err := os.Symlink(filepath.Join(tree, ".git"), filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		evil := filepath.Join(filepath.Dir(roots.Project), strings.ReplaceAll(name, " ", "-"))
		attack(evil)
		if p := standing(t, resolve.Roots{Project: evil, User: roots.User}, trust.Stranger); p.Place != evil {
			t.Errorf("%s: the record would be about %s", name, p.Place)
		}
	}
}

// TestAttackReplacedSettings: a process replaces the settings of a project while its user reads what they say.
// The files that were shown are kept, and the others count for nothing.
func TestAttackReplacedSettings(t *testing.T) {
	t.Parallel()
	roots := twoSpaces(t)
	shown, err := trust.Take(roots.Project)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(roots.Project, ".ai", "config", "agent", "agent.yaml"), "a: evil\n")
	if err := trust.Accept(roots, shown, noon); err != nil {
		t.Fatal(err)
	}
	p := standing(t, roots, trust.Accepted)
	if got := string(p.Record.Files["agent/agent.yaml"]); got != "a: 1\n" {
		t.Errorf("accepted was %q", got)
	}
}

// TestTakeIsBounded: neither links nor keys nor more than is read are kept.
func TestTakeIsBounded(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	roots := twoSpaces(t)
	config := filepath.Join(roots.Project, ".ai", "config")
	put(t, filepath.Join(config, "keys", "signing", "private_key.pem"), "secret")
	put(t, filepath.Join(config, "agent", "Keys", "x.yaml"), "secret")
	put(t, filepath.Join(config, "large.yaml"), strings.Repeat("#", 1<<20+1))
	put(t, filepath.Join(config, "a/b/c/d/e/f/g/h/i/j/deep.yaml"), "x: 1\n")
	if err := os.Symlink("agent/agent.yaml", filepath.Join(config, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	s, err := trust.Take(roots.Project)
	if err != nil || len(s.Files) != 1 || len(s.Left) != 3 {
		t.Errorf("%d files, left %+v, %v", len(s.Files), s.Left, err)
	}
	for i := range 5 {
		put(t, filepath.Join(config, "much", string(rune('a'+i))+".yaml"), strings.Repeat("#", 1<<20))
	}
	if s, err := trust.Take(roots.Project); err != nil || len(s.Files) != 4 || len(s.Left) != 5 { // of four MiB in all
		t.Errorf("%d files, left %d, %v", len(s.Files), len(s.Left), err)
	}
	if err := os.RemoveAll(filepath.Join(config, "much")); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		put(t, filepath.Join(config, "many", string(rune('a'+i%26))+strings.Repeat("x", i/26)+".yaml"), "")
	}
	if s, err := trust.Take(roots.Project); err != nil || len(s.Files) != 256 {
		t.Errorf("%d files, %v", len(s.Files), err)
	}
	if s, err := trust.Take(t.TempDir()); err != nil || len(s.Files)+len(s.Left) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// FuzzPointer: whatever .git says, a folder that no repository names stands for
// itself.
func FuzzPointer(f *testing.F) {
	f.Add("gitdir: /x/.git/worktrees/y\n", "/a/.git\n", "../..\n")
	f.Add("gitdir: private", ".git", "..")
	f.Fuzz(func(t *testing.T, pointer, back, common string) {
		roots := twoSpaces(t)
		put(t, filepath.Join(roots.Project, ".git"), pointer)
		put(t, filepath.Join(roots.Project, "private", "gitdir"), back)
		put(t, filepath.Join(roots.Project, "private", "commondir"), common)
		if p := trust.ProjectOf(roots); p.Place != roots.Project || p.Standing != trust.Stranger {
			t.Errorf("%+v", p)
		}
	})
}
