package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo/gitrepotest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// hostileConfig makes git run a program wherever a configuration can name one.
const hostileConfig = `
[core]
	fsmonitor = "PROGRAM"
	hooksPath = "HOOKS"
	pager = "PROGRAM"
	editor = "PROGRAM"
	sshCommand = "PROGRAM"
	gitProxy = "PROGRAM"
	askPass = "PROGRAM"
	alternateRefsCommand = "PROGRAM"
	attributesFile = "ATTRIBUTES"
	excludesFile = "PROGRAM"
	worktree = "/"
[pager]
	status = "PROGRAM"
	diff = "PROGRAM"
	log = "PROGRAM"
	show = "PROGRAM"
	blame = "PROGRAM"
[diff]
	external = "PROGRAM"
	submodule = log
	ignoreSubmodules = none
	orderFile = /etc/passwd
[diff "evil"]
	command = "PROGRAM"
	textconv = "PROGRAM"
	cachetextconv = true
[filter "evil"]
	clean = "PROGRAM"
	smudge = "PROGRAM"
	process = "PROGRAM"
	required = true
[merge "evil"]
	driver = "PROGRAM"
[gpg]
	program = "PROGRAM"
[gpg "ssh"]
	program = "PROGRAM"
[log]
	showSignature = true
[credential]
	helper = "!PROGRAM"
[interactive]
	diffFilter = "PROGRAM"
[alias]
	status = "!PROGRAM"
	log = "!PROGRAM"
[remote "origin"]
	url = "ext::PROGRAM"
	uploadpack = "PROGRAM"
	promisor = true
	partialclonefilter = blob:none
[extensions]
	partialClone = origin
[submodule]
	recurse = true
[status]
	submoduleSummary = true
[uploadpack]
	packObjectsHook = "PROGRAM"
[include]
	path = INCLUDED
`

var hooks = []string{"post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout", "pre-auto-gc", "query-watchman", "pre-commit", "post-rewrite"}

// arm makes a repository run a program that leaves a file, in every way there is.
func (r *repo) arm(dir string) (ran string) {
	r.t.Helper()
	ran = filepath.Join(r.t.TempDir(), "ran")
	program := filepath.Join(r.t.TempDir(), "evil")
	script := "#!/bin/sh\necho \"$0 $*\" >>'" + ran + "'\ncat 2>/dev/null\nexit 0\n"
	write := func(path, content string, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			r.t.Fatal(err)
		}
	}
	write(program, script, 0o700)
	git := filepath.Join(dir, ".git")
	attributes := "* diff=evil filter=evil merge=evil\n"
	included := filepath.Join(git, "included")
	config := strings.NewReplacer("PROGRAM", program, "HOOKS", filepath.Join(git, "hooks"), "ATTRIBUTES", filepath.Join(git, "info", "attributes"), "INCLUDED", included).Replace(hostileConfig)
	old, err := os.ReadFile(filepath.Join(git, "config"))
	if err != nil {
		r.t.Fatal(err)
	}
	write(filepath.Join(git, "config"), string(old)+config, 0o600)
	write(filepath.Join(git, "config.worktree"), config, 0o600)
	write(included, strings.ReplaceAll(config, "path = "+included, ""), 0o600)
	write(filepath.Join(git, "info", "attributes"), attributes, 0o600)
	write(filepath.Join(dir, ".gitattributes"), attributes, 0o600)
	for _, name := range hooks {
		write(filepath.Join(git, "hooks", name), script, 0o700)
	}
	return ran
}

// all calls every tool in every form.
func (r *repo) all(path string) []string {
	r.t.Helper()
	var said []string
	for _, c := range []struct {
		name string
		args args
	}{
		{"status", nil}, {"diff", nil}, {"diff", args{"staged": true}}, {"diff", args{"from": "HEAD~1", "to": "HEAD"}}, {"diff", args{"from": "HEAD", "stat": true}},
		{"log", nil}, {"log", args{"stat": true, "path": path}}, {"show", nil}, {"show", args{"stat": true}}, {"show", args{"path": path}},
		{"blame", args{"path": path}}, {"blame", args{"path": path, "rev": "HEAD~1"}},
	} {
		got, err := r.call(c.name, c.args)
		if err != nil {
			r.t.Errorf("%s %v: %v", c.name, c.args, err)
			continue
		}
		if o, ok := got.(*output); ok {
			said = append(said, o.Content)
		}
	}
	return said
}

// TestAttackRepositoryRuns: a repository's configuration, attributes, hooks, includes and submodules name programs wherever git takes one. A model reads it with every tool, and none of them runs.
func TestAttackRepositoryRuns(t *testing.T) {
	t.Parallel()
	r, inner := newRepo(t), newRepo(t)
	inner.commit("inner", map[string]string{"in.txt": "x\n"})
	r.commit("one", map[string]string{"a.txt": "one\n"})
	r.git("submodule", "-q", "add", inner.dir, "sub")
	r.commit("two", map[string]string{"a.txt": "two\n"})
	inner.git("clone", "-q", inner.dir, filepath.Join(r.dir, "nested"))
	ran := r.arm(r.dir)
	// The submodule and the nested repository are armed too.
	armed := []string{ran, r.arm(filepath.Join(r.dir, "nested"))}
	sub := filepath.Join(r.dir, "sub")
	if err := os.Remove(filepath.Join(sub, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(r.dir, ".git", "modules", "sub"), filepath.Join(sub, ".git")); err != nil {
		t.Fatal(err)
	}
	armed = append(armed, r.arm(sub))
	r.put("a.txt", "three\n")
	r.put("sub/in.txt", "changed\n")
	r.put("new.txt", "x\n")
	said := strings.Join(r.all("a.txt"), "\n")
	for _, want := range []string{" M a.txt", "+three", "-one\n+two", "two"} {
		if !strings.Contains(said, want) {
			t.Errorf("nobody said %q:\n%s", want, said)
		}
	}
	for _, ran := range armed {
		if what, err := os.ReadFile(ran); err == nil {
			t.Errorf("it ran:\n%s", what)
		}
	}
	// The scene is sound: git itself runs it.
	cmd := r.plainGit("status")
	_ = cmd.Run()
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("git itself does not run the program: %v", err)
	}
}

// TestAttackGitEnvironment: variables in the environment of rye-mcp, which a repository's scripts may have set, send git to another repository or a program. They do not reach git.
func TestAttackGitEnvironment(t *testing.T) {
	r := newRepo(t)
	r.commit("one", map[string]string{"a.txt": "one\n"})
	r.commit("two", map[string]string{"a.txt": "two\n"})
	ran := r.arm(r.dir)
	program := filepath.Join(filepath.Dir(ran), "none")
	environ := os.Environ()
	for _, name := range []string{"GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_DIR", "GIT_WORK_TREE", "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_PARAMETERS", "LESSOPEN", "GIT_TRACE", "GIT_OBJECT_DIRECTORY"} {
		environ = append(environ, name+"="+program)
	}
	tools, err := tool.NewRegistry(Tools(Deps{Scratch: gitrepotest.Scratch(), Environ: append(environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0="+program)})...)
	if err != nil {
		t.Fatal(err)
	}
	r.tools = tools
	r.all("a.txt")
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran")
	}
}

// TestAttackBorrowedRepository: a folder's .git is a link, points at another repository of the person, or borrows its refs, index, objects or packs. Nothing of the other repository is shown.
func TestAttackBorrowedRepository(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	victim := newRepo(t)
	secret := victim.commit("secret plans", map[string]string{"secret.txt": "secret\n"})
	git := filepath.Join(victim.dir, ".git")
	for name, make := range map[string]func(r *repo) error{
		"link": func(r *repo) error {
			return errorsOf(os.RemoveAll(filepath.Join(r.dir, ".git")), os.Symlink(git, filepath.Join(r.dir, ".git")))
		},
		"file": func(r *repo) error {
			return errorsOf(os.RemoveAll(filepath.Join(r.dir, ".git")), os.WriteFile(filepath.Join(r.dir, ".git"), []byte("gitdir: "+git+"\n"), 0o600))
		},
		"alternates": func(r *repo) error {
			return errorsOf(os.WriteFile(filepath.Join(r.dir, ".git/objects/info/alternates"), []byte(filepath.Join(git, "objects")+"\n"), 0o600),
				os.WriteFile(filepath.Join(r.dir, ".git/refs/heads/main"), []byte(secret+"\n"), 0o600))
		},
		"objects": func(r *repo) error {
			return errorsOf(os.RemoveAll(filepath.Join(r.dir, ".git/objects")), os.Symlink(filepath.Join(git, "objects"), filepath.Join(r.dir, ".git/objects")),
				os.WriteFile(filepath.Join(r.dir, ".git/refs/heads/main"), []byte(secret+"\n"), 0o600))
		},
		"fanout": func(r *repo) error {
			to := filepath.Join(r.dir, ".git/objects", secret[:2])
			return errorsOf(os.RemoveAll(to), os.Symlink(filepath.Join(git, "objects", secret[:2]), to), os.WriteFile(filepath.Join(r.dir, ".git/refs/heads/main"), []byte(secret+"\n"), 0o600))
		},
		"index": func(r *repo) error {
			return errorsOf(os.Remove(filepath.Join(r.dir, ".git/index")), os.Symlink(filepath.Join(git, "index"), filepath.Join(r.dir, ".git/index")))
		},
		"commondir": func(r *repo) error {
			return os.WriteFile(filepath.Join(r.dir, ".git/commondir"), []byte(git+"\n"), 0o600)
		},
		"worktree": func(r *repo) error { r.git("config", "core.worktree", victim.dir); return nil },
	} {
		r := newRepo(t)
		r.commit("own", map[string]string{"own.txt": "own\n"})
		if err := make(r); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			args args
		}{{"status", nil}, {"log", nil}, {"show", nil}, {"show", args{"rev": secret}}, {"show", args{"rev": secret[:4]}}, {"show", args{"rev": secret, "path": "secret.txt"}}, {"diff", nil}} {
			got, err := r.call(c.name, c.args)
			if o, ok := got.(*output); ok && err == nil && strings.Contains(o.Content, "secret") {
				t.Errorf("%s: %s %v shows %q", name, c.name, c.args, o.Content)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestAttackProtectedInHistory: files that tools do not touch, and signatures, are in commits and changes, and a model asks for them by path, case, blob or pattern. They are not shown.
func TestAttackProtectedInHistory(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	signature := "# rye:signed:2026-01-02T03:04:05Z:" + strings.Repeat("ab", 32) + ":" + strings.Repeat("Ab", 30) + ":0123456789abcdef"
	files := map[string]string{
		".envrc": "export KEY=hidden\n", "deep/.mcp.json": "hidden\n", ".ai/config/keys/trusted/x.toml": "hidden\n", ".ai/state/threads/x.json": "hidden\n",
		".Claude/Settings.json": "hidden\n", "item.py": signature + "\nshown\n", "ok.txt": "shown\n",
	}
	r.commit("one", files)
	for name := range files {
		files[name] += "more hidden\n"
	}
	files["item.py"], files["ok.txt"] = signature+"\nshown\nmore\n", "shown\nmore\n"
	r.commit("two", files)
	blob := r.git("rev-parse", "HEAD:.envrc")
	for name := range files {
		r.put(name, strings.ReplaceAll(files[name], "more", "hidden once again\nmore"))
	}
	r.put("item.py", signature+"\nshown\nand more\n")
	r.put("ok.txt", "shown\nand more\n")
	said := strings.Join(r.all("item.py"), "\n")
	if strings.Contains(said, "hidden") || strings.Contains(said, "rye:signed") || strings.Contains(said, ".envrc") || !strings.Contains(said, "+and more") {
		t.Errorf("said\n%s", said)
	}
	for _, path := range []string{".envrc", ".ENVRC", "deep/../.envrc", "deep/.mcp.json", ".ai/state/threads/x.json", ".git/config"} {
		r.refuses("show", args{"path": path}, tool.CodeProtected)
		r.refuses("blame", args{"path": path}, tool.CodeProtected)
		r.refuses("diff", args{"path": path}, tool.CodeProtected)
	}
	r.refuses("show", args{"rev": blob}, tool.CodeNotFound)
	r.refuses("show", args{"rev": "HEAD:.envrc"}, tool.CodeBadArguments)
}

// TestAttackCommitSpeaks: commits and files of a repository hold escape sequences and characters that nobody sees. They are shown by their numbers.
func TestAttackCommitSpeaks(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit("one", map[string]string{"a.txt": "one\n"})
	r.commit("red \x1b[31m\u202e\u200b\x07", map[string]string{"a.txt": "\x1b]0;title\x07 \u202e x\n"})
	said := strings.Join(r.all("a.txt"), "\n")
	if strings.ContainsAny(said, "\x1b\x07\u202e\u200b") || !strings.Contains(said, "<U+001B>") || !strings.Contains(said, "<U+202E>") {
		t.Errorf("%q", said)
	}
}

// TestAttackEndlessHistory: a change has a line of many megabytes and many lines. A page of it is shown, and git is stopped then.
func TestAttackEndlessHistory(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	r := newRepo(t)
	r.commit("one", map[string]string{"a.txt": "one\n"})
	r.commit("two", map[string]string{"a.txt": strings.Repeat("x", 4<<20) + "\n" + strings.Repeat("y\n", 1<<20)})
	for _, said := range r.all("a.txt") {
		if len(said) > pageBytes+100 {
			t.Errorf("a page of %d bytes", len(said))
		}
	}
}

// TestAttackGitInPath: a command of a thread puts a program called git into a folder of the project that is in PATH, as that of an activated .venv is.
// Git is the one outside of the project, and its PATH has no folder of it.
func TestAttackGitInPath(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	bin, ran := filepath.Join(r.dir, ".venv", "bin"), filepath.Join(t.TempDir(), "ran")
	r.put(".venv/bin/git", "#!/bin/sh\ntouch "+ran+"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.use(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")))
	has(t, r.says("status", nil), ".venv")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the project's git has run")
	}
	r.use(append(os.Environ(), "PATH="+bin))
	r.refuses("status", nil, tool.CodeUnsupported)
}
