package gitignore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIgnored(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patterns string
		ignored  []string // a slash at the end makes a folder
		kept     []string
	}{
		{"*.log\n!keep.log\n", []string{"a.log", "sub/b.log"}, []string{"keep.log", "sub/keep.log", "a.logs"}},
		{"build/\n", []string{"build/", "sub/build/"}, []string{"build", "rebuild/"}},
		{"/root\n", []string{"root", "root/"}, []string{"sub/root"}},
		{"a/b\n", []string{"a/b"}, []string{"x/a/b"}},
		{"**/b\n", []string{"b", "x/b", "x/y/b"}, []string{"bb"}},
		{"a/**\n", []string{"a/x", "a/x/y"}, []string{"a", "a/", "b/a/x"}},
		{"a/**/b\n", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"a/bb", "x/a/b"}},
		{"# comment\n\\#file\n\\!file\n", []string{"#file", "!file"}, []string{"# comment", "comment"}},
		{"trailing  \nkept\\ \n", []string{"trailing", "kept "}, []string{"trailing  ", "kept"}},
		{"[a-c].txt\n[!x]y\n[[:digit:]]z\n[]]\n", []string{"b.txt", "ay", "5z", "]"}, []string{"d.txt", "xy", "az", "["}},
		{"[open\nback\\\n", nil, []string{"[open", "back\\", "back"}},
		{"fo?\n", []string{"foo"}, []string{"fo", "f/o"}},
		{"*\n!*/\n!*.go\n", []string{"a.txt", "x/a.txt"}, []string{"x/", "a.go", "x/a.go"}},
		{"\ufeffbom\r\nsecond\r\n", []string{"bom", "second"}, nil},
		{"!\n/\n//\n", nil, []string{"a", "a/"}},
	} {
		chain := Chain{Parse("", []byte(tt.patterns))}
		for _, path := range tt.ignored {
			if rel, dir := strings.CutSuffix(path, "/"); !chain.Ignored(rel, dir) {
				t.Errorf("%q does not ignore %q", tt.patterns, path)
			}
		}
		for _, path := range tt.kept {
			if rel, dir := strings.CutSuffix(path, "/"); chain.Ignored(rel, dir) {
				t.Errorf("%q ignores %q", tt.patterns, path)
			}
		}
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	chain := Chain{Parse("", []byte("*.log\n/only-top\n")), Parse("sub", []byte("!keep.log\n/top\n"))}
	for path, want := range map[string]bool{
		"a.log": true, "sub/a.log": true, "sub/keep.log": false, "keep.log": true, "sub/top": true, "top": false, "sub/x/top": false, "subway/keep.log": true, "sub/only-top": false,
	} {
		if chain.Ignored(path, false) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}

// TestAsGit: random patterns decide about random paths as git itself decides.
func TestAsGit(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		cmd := exec.Command(program, append([]string{"-C", dir}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
		cmd.Stdin = strings.NewReader(stdin)
		var out bytes.Buffer
		cmd.Stdout = &out
		_ = cmd.Run() // it ends with 1 when nothing is ignored
		return out.String()
	}
	git("", "init", "-q")
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	pattern := rapid.StringMatching(`!?/?(\*\*/)?([ab.*?]|\[ab\]|\[!a\]|\[a-\]|\[\^b-z\]|\[\[:alpha:\]\]|\\\*|\\a|\*\*|/){1,5}(/\*\*)?/?( |\\ )?`)
	files := rapid.SliceOfN(pattern, 0, 5)
	path := rapid.StringMatching(`a?(/?[ab.*\]-]{1,2}){1,3}`)
	rapid.Check(t, func(r *rapid.T) {
		top, inner := strings.Join(files.Draw(r, "top"), "\n"), strings.Join(files.Draw(r, "inner"), "\n")
		for name, text := range map[string]string{".gitignore": top, "a/.gitignore": inner} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				r.Fatal(err)
			}
		}
		chain := Chain{Parse("", []byte(top)), Parse("a", []byte(inner))}
		var asked []string
		for _, p := range rapid.SliceOfN(path, 1, 20).Draw(r, "paths") {
			if clean := filepath.Clean(p); clean == p && filepath.IsLocal(p) && p != "." && !strings.HasPrefix(p, ".git") {
				asked = append(asked, p)
			}
		}
		said := map[string]bool{}
		for p := range strings.SplitSeq(git(strings.Join(asked, "\x00"), "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
			said[p] = true
		}
		for _, p := range asked {
			if got := whole(chain, p); got != said[p] {
				r.Errorf("%q: %t; top %q, inner %q", p, got, top, inner)
			}
		}
	})
}

// whole decides about a path with the folders above it, as a walk does.
func whole(c Chain, rel string) bool {
	for i := range rel {
		if rel[i] != '/' {
			continue
		}
		if above := rel[:i]; c.Ignored(above, true) {
			return true
		}
	}
	// git asks the file system what a path is; there is only the folder a.
	return c.Ignored(rel, rel == "a")
}

// TestAttackPatternBomb: a repository's .gitignore has patterns that take other matchers exponential time, lines of megabytes, and more lines than anybody reads. A decision takes a bounded time.
func TestAttackPatternBomb(t *testing.T) {
	t.Parallel()
	bombs := []string{
		strings.Repeat("*a", 400) + "b", strings.Repeat("**/", 300) + "x", strings.Repeat("a/**/", 190) + "b", strings.Repeat("?*", 400) + "b", strings.Repeat("[a", 400), strings.Repeat("*/", 400) + "b",
	}
	f := Parse("", []byte(strings.Join(bombs, "\n")+"\n"+strings.Repeat("*x", 1<<20)))
	if len(f.patterns) != len(bombs) {
		t.Errorf("%d patterns", len(f.patterns))
	}
	for _, path := range []string{strings.Repeat("a", 4000), strings.Repeat("a/", 1000) + "a"} {
		if (Chain{f}).Ignored(path, false) {
			t.Errorf("%.20s is ignored", path)
		}
	}
	if f := Parse("", []byte(strings.Repeat("x\n", 1<<20))); len(f.patterns) > maxLines {
		t.Errorf("%d patterns", len(f.patterns))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("*.log\n!a/\n[a-z]\\", "a/b.log")
	f.Fuzz(func(_ *testing.T, patterns, path string) {
		_ = Chain{Parse("", []byte(patterns)), Parse("a", []byte(patterns))}.Ignored(path, false)
	})
}
