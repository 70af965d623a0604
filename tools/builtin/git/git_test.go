package git

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/gitrepo/gitrepotest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestMain(m *testing.M) { os.Exit(gitrepotest.Run(m)) }

// repo is a repository of a test, made by git itself.
type repo struct {
	t     *testing.T
	dir   string
	tools *tool.Registry
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &repo{t: t, dir: t.TempDir()}
	r.use(os.Environ())
	r.git("init", "-q", "-b", "main")
	return r
}

// use has the tools work in an environment.
func (r *repo) use(environ []string) {
	r.t.Helper()
	var err error
	if r.tools, err = tool.NewRegistry(Tools(Deps{Environ: environ, Scratch: gitrepotest.Scratch()})...); err != nil {
		r.t.Fatal(err)
	}
}

// git runs git as a person does.
func (r *repo) git(args ...string) string { return r.gitIn(r.dir, args...) }

func (r *repo) gitIn(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) put(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits files.
func (r *repo) commit(message string, files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		r.put(name, content)
	}
	r.git("add", "-A", "-f")
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.git("rev-parse", "HEAD")
}

type args map[string]any

func (r *repo) call(name string, a args) (any, error) {
	r.t.Helper()
	return r.callIn(tool.Env{Project: r.dir}, name, a)
}

func (r *repo) callIn(env tool.Env, name string, a args) (any, error) {
	r.t.Helper()
	if a == nil {
		a = args{}
	}
	raw, err := json.Marshal(a)
	if err != nil {
		r.t.Fatal(err)
	}
	found, ok := r.tools.Get("rye/git/" + name)
	if !ok {
		r.t.Fatalf("no tool %s", name)
	}
	return found.Call(r.t.Context(), env, raw)
}

// says wants an answer.
func (r *repo) says(name string, a args) *output {
	r.t.Helper()
	got, err := r.call(name, a)
	if err != nil {
		r.t.Fatalf("%s %v: %v", name, a, err)
	}
	o, ok := got.(*output)
	if !ok {
		r.t.Fatalf("a result of type %T", got)
	}
	return o
}

func (r *repo) refuses(name string, a args, code tool.Code) {
	r.t.Helper()
	got, err := r.call(name, a)
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || f.Code != code || f.Hint == "" {
		r.t.Errorf("%s %v: %v, %v; want %s with a hint", name, a, got, err, code)
	}
}

func has(t *testing.T, o *output, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(o.Content, p) {
			t.Errorf("no %q in\n%s", p, o.Content)
		}
	}
}

func TestReading(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.refuses("log", nil, tool.CodeNotFound)
	first := r.commit("first words", map[string]string{"a.txt": "one\ntwo\n", "sub/b.txt": "b\n"})
	second := r.commit("second words", map[string]string{"a.txt": "one\n2\n"})
	r.git("tag", "-a", "v1", "-m", "tagged", first)
	r.put("a.txt", "one\n2\nthree\n")
	r.put("new file.txt", "x")
	r.put("sub/b.txt", "staged\n")
	r.git("add", "sub")

	has(t, r.says("status", nil), "## main\n", " M a.txt\n", "M  sub/b.txt\n", "?? \"new file.txt\"\n")
	has(t, r.says("status", args{"path": "sub"}), "M  sub/b.txt\n")
	has(t, r.says("diff", nil), "+three\n")
	has(t, r.says("diff", args{"staged": true}), "-b\n+staged\n")
	has(t, r.says("diff", args{"from": "v1", "to": "main", "context": 0}), "-two\n+2\n")
	has(t, r.says("diff", args{"from": "HEAD", "stat": true}), "2 files changed")
	has(t, r.says("log", nil), second[:7]+" 2026-01-02 Ada: second words\n"+first[:7])
	if o := r.says("log", args{"text": "FIRST", "author": "ada@", "path": "a.txt", "since": "2026-01-01", "until": "2026-02-01"}); strings.Count(o.Content, "\n") != 1 {
		t.Errorf("%q", o.Content)
	}
	if o := r.says("log", args{"rev": "v1..main", "limit": 1}); !strings.Contains(o.Content, "second") || strings.Contains(o.Content, "first") {
		t.Errorf("%q", o.Content)
	}
	has(t, r.says("log", args{"stat": true, "skip": 1}), "sub/b.txt")
	has(t, r.says("show", nil), "second words", "-two", "+2", "Author:     Ada <ada@example.org>")
	has(t, r.says("show", args{"rev": "v1", "stat": true}), "first words", "a.txt")
	has(t, r.says("show", args{"rev": "v1", "path": "a.txt"}), "one\ntwo\n")
	has(t, r.says("blame", args{"path": "a.txt"}), "2026-01-02", "one", "Not Committed Yet")
	if o := r.says("blame", args{"path": "a.txt", "rev": "v1", "first_line": 2, "last_line": 2}); strings.Count(o.Content, "\n") != 1 || !strings.Contains(o.Content, "two") {
		t.Errorf("%q", o.Content)
	}
	for _, bad := range []struct {
		name string
		args args
		code tool.Code
	}{
		{"show", args{"rev": "nothing"}, tool.CodeNotFound}, {"log", args{"rev": "--all"}, tool.CodeBadArguments}, {"show", args{"rev": "HEAD:a.txt"}, tool.CodeBadArguments},
		{"show", args{"rev": "-O/etc/passwd"}, tool.CodeBadArguments}, {"diff", args{"from": "--no-index"}, tool.CodeBadArguments}, {"diff", args{"to": "HEAD"}, tool.CodeBadArguments},
		{"show", args{"path": "missing"}, tool.CodeNotFound}, {"show", args{"path": "sub"}, tool.CodeNotFound}, {"blame", args{"path": "../x"}, tool.CodeOutsideProject},
		{"blame", args{"path": "missing"}, tool.CodeNotFound}, {"diff", args{"path": "/etc"}, tool.CodeOutsideProject}, {"show", args{"rev": "HEAD^{tree}"}, tool.CodeNotFound},
		{"blame", args{"path": "a.txt", "first_line": 100}, tool.CodeNotFound}, {"log", args{"author": "a\nb"}, tool.CodeBadArguments},
	} {
		r.refuses(bad.name, bad.args, bad.code)
	}
	has(t, r.says("diff", args{"path": filepath.Join(r.dir, "a.txt")}), "+three")
}

// TestSubfolder: the repository of a project may begin above it; only the project is shown.
// An answer is what was asked for, and a refusal names what is wrong.
func TestAnswersToWhatWasAsked(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for name, a := range map[string]args{"show": {}, "log": {}} {
		if _, err := r.call(name, a); tool.AsFault(err) == nil || !strings.Contains(err.Error(), "no commit yet") {
			t.Errorf("%s of none: %v", name, err)
		}
	}
	r.commit("one", map[string]string{"a": "1\n2\n"})
	r.commit("two", map[string]string{"a": "1\n3\n"})
	for _, c := range []struct {
		name, part string
		a          args
	}{
		{"show", "no such commit", args{"rev": "HEAD~9"}},
		{"show", "no such commit", args{"rev": "HEAD^^^"}},
		{"log", "no such commit", args{"rev": "HEAD~7..HEAD"}},
		{"diff", "no such commit", args{"from": "HEAD~5"}},
		{"blame", "no such commit", args{"path": "a", "rev": "HEAD~5"}},
		{"blame", "is before first_line", args{"path": "a", "first_line": 2, "last_line": 1}},
		{"log", "is no date", args{"since": "garbage"}},
		{"log", "is no date", args{"until": "marvellous"}},
	} {
		if _, err := r.call(c.name, c.a); tool.AsFault(err) == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s %v: %v, want %q", c.name, c.a, err, c.part)
		}
	}
	for _, since := range []string{"2026-01-01", "10 years ago", "last year", "yesterday", "two weeks ago", "Friday", "Mar"} {
		r.says("log", args{"since": since})
	}
	if o := r.says("diff", args{"from": "HEAD~1", "stat": true}); strings.Contains(o.Content, "@@") || !strings.Contains(o.Content, "1 file changed") {
		t.Errorf("stat: %q", o.Content)
	}
	for _, name := range []string{"log", "diff", "status"} {
		if o := r.says(name, args{"path": "none.go"}); o.Content == "" && !strings.Contains(o.Note, "no file or folder") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if o := r.says("log", args{"path": "none.go"}); o.Note == "" {
		t.Errorf("a path that is not there: %+v", o)
	}
}

func TestSubfolder(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit("outer", map[string]string{"outer.txt": "x\n", "project/in.txt": "x\n"})
	r.commit("inner", map[string]string{"project/in.txt": "y\n"})
	r.commit("outer again", map[string]string{"outer.txt": "y\n"})
	r.put("outer.txt", "changed")
	r.put("project/in.txt", "changed")
	inner := *r
	inner.dir = filepath.Join(r.dir, "project")
	if o := inner.says("status", nil); strings.Contains(o.Content, "outer") || !strings.Contains(o.Content, "in.txt") {
		t.Errorf("%q", o.Content)
	}
	if o := inner.says("log", nil); strings.Contains(o.Content, "again") || !strings.Contains(o.Content, "inner") {
		t.Errorf("%q", o.Content)
	}
	has(t, inner.says("show", args{"path": "in.txt"}), "y\n")
	inner.refuses("show", args{"path": "../outer.txt"}, tool.CodeOutsideProject)
}

// TestKinds: worktrees, packed, shallow and detached repositories, and those with
// other hashes, are read.
func TestKinds(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit("one", map[string]string{"a": "1\n"})
	second := r.commit("two", map[string]string{"a": "2\n"})
	r.git("gc", "-q")
	linked, shallow, other := filepath.Join(t.TempDir(), "linked"), filepath.Join(t.TempDir(), "shallow"), filepath.Join(t.TempDir(), "other")
	r.git("worktree", "add", "-q", "-b", "side", linked)
	r.git("clone", "-q", "--depth", "1", "file://"+r.dir, shallow)
	r.git("init", "-q", "--object-format=sha256", other)
	r.gitIn(other, "commit", "-q", "--allow-empty", "-m", "two")
	r.git("checkout", "-q", second)
	for _, dir := range []string{r.dir, linked, shallow, other} {
		at := *r
		at.dir = dir
		has(t, at.says("log", args{"limit": 1}), ": two\n")
		has(t, at.says("status", nil), "## ")
	}
	none := *r
	none.dir = t.TempDir()
	none.refuses("status", nil, tool.CodeNotFound)
}

// pages reads all pages of a command, each where the note of the one before says.
func (r *repo) pages(name string, a args, room int) (all []string) {
	r.t.Helper()
	a, env := maps.Clone(a), tool.Env{Project: r.dir, Room: room}
	for range 200 {
		got, err := r.callIn(env, name, a)
		if err != nil {
			r.t.Fatalf("%s %v: %v", name, a, err)
		}
		o := got.(*output)
		if size := tool.JSONSize(o.Content); size > env.Page(pageBytes)+100 {
			r.t.Fatalf("%s %v: a page of %d bytes", name, a, size)
		}
		all = append(all, o.Content)
		_, next, more := strings.Cut(o.Note, "go on with ")
		if !more {
			return all
		}
		parameter, at := "", 0
		if _, err := fmt.Sscan(next, &parameter, &at); err != nil || at <= 0 || at != max(o.NextOffset, o.NextSkip) {
			r.t.Fatalf("%s %v: %+v", name, a, o)
		}
		a[parameter] = at
	}
	r.t.Fatalf("%s has no last page", name)
	return nil
}

// history makes so many commits, each of a file of its own, faster than git commit does.
func (r *repo) history(commits int) {
	r.t.Helper()
	var stream strings.Builder
	for i := range commits {
		subject := fmt.Sprintf("commit %d with \"quotes\" and some more words", i)
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%s\nM 644 inline many/%d.txt\ndata 2\nx\n\n",
			1767323045+i, len(subject), subject, i)
	}
	cmd := exec.CommandContext(r.t.Context(), "git", "-C", r.dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	r.git("reset", "-q", "--hard")
}

// TestPages: what is too long for an answer is read in pages, each where the one before says, and
// they are the whole.
func TestPages(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	const commits = 90
	r.history(commits)
	var long strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&long, "line %d with \"quotes\"\n", i)
	}
	r.commit("long", map[string]string{"long.txt": long.String()})
	if shown := strings.Join(r.pages("show", args{"path": "long.txt"}, 0), ""); shown != long.String() {
		t.Errorf("%d bytes in pages of %d", len(shown), long.Len())
	}
	for i := range commits {
		r.put(fmt.Sprintf("untracked %d.txt", i), "x")
		r.put(fmt.Sprintf("many/%d.txt", i), "y\n")
	}
	lines := func(text string) []string { // git prints an empty line before each record but the first
		return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" })
	}
	r.git("checkout", "-q", "-b", "changed")
	r.git("commit", "-q", "-m", "many", "many")
	r.git("checkout", "-q", "main")
	for _, tt := range []struct {
		command string
		args    args
	}{
		{"status", args{}},
		{"diff", args{"from": "HEAD", "to": "changed"}},
		{"log", args{"limit": 500, "skip": 1}},
		{"log", args{"limit": 500, "skip": 1, "stat": true}},
		{"show", args{"rev": "changed"}},
		{"blame", args{"path": "long.txt", "first_line": 3900}},
		{"blame", args{"path": "long.txt", "first_line": 100, "last_line": 200}},
	} {
		whole := r.pages(tt.command, tt.args, 1<<20)
		paged := r.pages(tt.command, tt.args, 3_000)
		if len(paged) < 3 || !slices.Equal(lines(strings.Join(paged, "")), lines(strings.Join(whole, ""))) {
			t.Errorf("%s %v: %d pages, the whole in %d:\n%s", tt.command, tt.args, len(paged), len(whole), strings.Join(paged, "-- page\n"))
		}
	}
}

// TestPageOfOneLine: a line, or a commit, which is longer than a page is one, and the next page goes
// on behind it. A line that is cut tells how long it is.
func TestPageOfOneLine(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.commit("controls", map[string]string{"odd.txt": strings.Repeat("\x01", 200_000) + "\nnext\n"})
	small := tool.Env{Project: r.dir, Room: 3_000}
	got, err := r.callIn(small, "show", args{"path": "odd.txt"})
	if err != nil {
		t.Fatal(err)
	}
	if o := got.(*output); !strings.Contains(o.Content, "[line cut, 200000 bytes]") || o.NextOffset != 2 {
		t.Errorf("%.100q…, %d, %s", o.Content, o.NextOffset, o.Note)
	}
	has(t, r.says("show", args{"path": "odd.txt", "offset": 2}), "next\n")
	many := map[string]string{}
	for i := range 100 {
		many[fmt.Sprintf("folder/file with a name %d", i)] = "x\n"
	}
	r.commit("many files", many)
	got, err = r.callIn(small, "log", args{"stat": true})
	if err != nil {
		t.Fatal(err)
	}
	o := got.(*output)
	has(t, o, "many files", "folder/file with a name 0 ")
	if o.NextSkip != 1 || strings.Contains(o.Content, "controls") || !strings.Contains(o.Note, "rye/git/show with stat true") {
		t.Errorf("%+v", o)
	}
	has(t, r.says("log", args{"stat": true, "skip": 1}), "controls")
}

// TestNoGit: where git is not installed the error says so.
func TestNoGit(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.use([]string{"PATH=" + t.TempDir()})
	r.refuses("status", nil, tool.CodeUnsupported)
}

// plainGit is git as a person calls it in a folder that they have just opened.
func (r *repo) plainGit(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	return cmd
}
