package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// globs are the files that a pattern finds.
func (b *bench) globs(args in) string {
	b.t.Helper()
	return strings.Join(do[globResult](b, "glob", args).Files, " ")
}

// greps are the files in which a pattern is found.
func (b *bench) greps(args in) string {
	b.t.Helper()
	var found []string
	for _, m := range do[grepResult](b, "grep", args).Matches {
		found = append(found, m.Path)
	}
	return strings.Join(found, " ")
}

func TestGitignore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, text := range map[string]string{
		".gitignore": "*.log\nbuild/\n/top.txt\n!keep.log\n", "sub/.gitignore": "!b.log\n/local.txt\n", ".git/info/exclude": "excluded.txt\n",
		"a.log": "", "keep.log": "", "sub/b.log": "", "sub/c.log": "", "build/x.txt": "", "sub/build/y.txt": "", "top.txt": "", "sub/top.txt": "", "sub/local.txt": "",
		"excluded.txt": "", "plain.txt": "", "build/deep/.gitignore": "z.txt\n", "build/deep/z.txt": "", "build/deep/w.txt": "",
	} {
		if text == "" {
			text = "needle\n"
		}
		b.put(path, text)
	}
	const kept = "keep.log plain.txt sub/b.log sub/top.txt"
	if got := b.globs(in{"pattern": "**/*.{log,txt}"}); got != kept {
		t.Errorf("glob: %s", got)
	}
	if got := b.greps(in{"pattern": "needle"}); got != kept {
		t.Errorf("grep: %s", got)
	}
	if r := do[grepResult](b, "grep", in{"pattern": "needle"}); r.Ignored != 7 {
		t.Errorf("%d skipped", r.Ignored)
	}
	if got := b.globs(in{"pattern": "**/*.{log,txt}", "include_ignored": true}); strings.Count(got, " ") != 12 {
		t.Errorf("all: %s", got)
	}
	// An ignored folder or file that is named is meant.
	for _, args := range []in{{"pattern": "needle", "path": "build"}, {"pattern": "needle", "path": "build/deep"}, {"pattern": "needle", "path": "a.log"}} {
		want := map[string]string{"build": "build/deep/w.txt build/x.txt", "build/deep": "build/deep/w.txt", "a.log": "a.log"}[args["path"].(string)]
		if got := b.greps(args); got != want {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := b.globs(in{"pattern": "build/deep/*.txt"}); got != "build/deep/w.txt" {
		t.Errorf("below a fixed prefix: %s", got)
	}
}

// TestGitignoreAbove: where the project is a part of a repository, the files above count.
func TestGitignoreAbove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outer := b.dir
	b.put(".git/HEAD", "ref: refs/heads/main\n")
	b.put(".gitignore", "*.log\n/project/dist/\n")
	b.put("project/a.log", "x\n")
	b.put("project/dist/b.txt", "x\n")
	b.put("project/c.txt", "x\n")
	b.dir = filepath.Join(outer, "project")
	if got := b.globs(in{"pattern": "**"}); got != "c.txt" {
		t.Errorf("found %s", got)
	}
}

// TestAttackGitignore: a repository's .gitignore is a link out of the project, a folder, or has patterns that spell out a secret in a name. None is read, and no pattern tells names apart by more than is shown.
func TestAttackGitignore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outside := filepath.Join(t.TempDir(), "patterns")
	if err := os.WriteFile(outside, []byte("*.txt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.put("a.txt", "x\n")
	b.put("sub/b.txt", "x\n")
	if err := os.Symlink(outside, filepath.Join(b.dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "sub", ".gitignore"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := b.globs(in{"pattern": "**/*.txt"}); got != "a.txt sub/b.txt" {
		t.Errorf("found %s", got)
	}
	b.mask = oneSecret("hunter2-hunter2")
	b.put("other/.gitignore", "x-hunt*\n/hunter2-hunter2/\n")
	b.put("other/x-hunter2-hunter2.txt", "x\n")
	b.put("other/hunter2-hunter2/y.txt", "x\n")
	if got := b.globs(in{"pattern": "other/**/*.txt"}); strings.Count(got, "txt") != 2 || strings.Contains(got, "hunter2") {
		t.Errorf("found %s", got)
	}
}
