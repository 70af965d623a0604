package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func tree(t *testing.T) *bench {
	b := newBench(t)
	for _, path := range []string{
		"main.go", "src/a.go", "src/a.ts", "src/deep/b.go", "src/deep/c.md", ".hidden/d.go", ".git/e.go", "sub/.git/f.go",
		".ai/state/threads/g.go", ".ai/tools/h.go", "src/[x]/i.go",
	} {
		b.put(path, "package x // "+path+"\n")
	}
	return b
}

func TestGlob(t *testing.T) {
	t.Parallel()
	b := tree(t)
	cases := []struct{ pattern, path, want string }{
		{"*.go", "", "main.go"},
		{"./*.go", "", "main.go"},
		{"**/*.go", "", ".ai/tools/h.go .hidden/d.go main.go src/[x]/i.go src/a.go src/deep/b.go"},
		{"**/*.go", "src", "src/[x]/i.go src/a.go src/deep/b.go"},
		{"src/*.{go,ts}", "", "src/a.go src/a.ts"},
		{"src/deep/b.go", "", "src/deep/b.go"},
		{`src/\[x\]/*.go`, "", "src/[x]/i.go"},
		{"src/deep/**", "", "src/deep/b.go src/deep/c.md"},
		{"deep/?.md", "src", "src/deep/c.md"},
		{"nowhere/*.go", "", ""},
		{b.dir + "/src/*.ts", "", "src/a.ts"},
	}
	for _, c := range cases {
		args := in{"pattern": c.pattern}
		if c.path != "" {
			args["path"] = c.path
		}
		r := do[globResult](b, "glob", args)
		if got := strings.Join(r.Files, " "); got != c.want || r.Count != len(r.Files) || r.Truncated {
			t.Errorf("%q in %q:\n got %s\nwant %s", c.pattern, c.path, got, c.want)
		}
	}
	b.refuse("glob", in{"pattern": "[a"}, tool.CodeBadArguments, "not a valid glob")
	b.refuse("glob", in{"pattern": "*", "path": "main.go"}, tool.CodeBadArguments, "not a directory")
	b.refuse("glob", in{"pattern": "*", "path": "none"}, tool.CodeNotFound, "does not exist")
}

func TestGlobIsBounded(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	b := newBench(t)
	for i := range maxPaths + 1 {
		b.put(fmt.Sprintf("f%05d", i), "")
	}
	if r := do[globResult](b, "glob", in{"pattern": "*"}); !r.Truncated || r.Count != maxPaths || r.Note == "" {
		t.Errorf("%d files, truncated %v", r.Count, r.Truncated)
	}
	if r := do[lsResult](b, "ls", in{}); !r.Truncated || r.Total != maxPaths+1 || r.Note == "" {
		t.Errorf("ls: %d of %d, truncated %v", len(r.Entries), r.Total, r.Truncated)
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	b := tree(t)
	b.put("bin", "needle\x00")
	b.put("big", "needle\n"+strings.Repeat("x", maxGrepBytes))
	b.put("wide", strings.Repeat("y", 4000)+"needle"+strings.Repeat("z", 4000)+"\r\n")
	b.put("one.txt", "x\n  Needle here\nneedle\n")
	r := do[grepResult](b, "grep", in{"pattern": "(?i)needle"})
	if r.Count != 3 || r.SkippedBinary != 1 || r.SkippedLarge != 1 || r.Truncated {
		t.Fatalf("got %+v", r)
	}
	first := r.Matches[0]
	if first.Path != "one.txt" || first.Line != 2 || first.Text != "  Needle here" || first.LineID != b.ids("one.txt")["  Needle here"] {
		t.Errorf("got %+v", first)
	}
	if wide := r.Matches[2]; !strings.Contains(wide.Text, "yneedlez") || len(wide.Text) > 400 {
		t.Errorf("got %+v", wide)
	}
	paths := func(args in) string {
		var got []string
		for _, m := range do[grepResult](b, "grep", args).Matches {
			got = append(got, m.Path)
		}
		return strings.Join(slices.Compact(got), " ")
	}
	for _, c := range []struct {
		args in
		want string
	}{
		{in{"pattern": "package", "include": "*.ts"}, "src/a.ts"},
		{in{"pattern": "package", "include": "deep/*.go", "path": "src"}, "src/deep/b.go"},
		{in{"pattern": "package", "include": "**/deep/*"}, "src/deep/b.go src/deep/c.md"},
		{in{"pattern": "package", "path": "src/deep/c.md"}, "src/deep/c.md"},
		{in{"pattern": "^needle$"}, "one.txt"},
		{in{"pattern": "needle$", "path": "wide"}, ""},
		{in{"pattern": "z$", "path": "wide"}, "wide"},
		{in{"pattern": "package", "path": "sub"}, ""},
	} {
		if got := paths(c.args); got != c.want {
			t.Errorf("%v: got %q, want %q", c.args, got, c.want)
		}
	}
	b.refuse("grep", in{"pattern": "(?<=x)"}, tool.CodeBadArguments, "RE2")
	b.refuse("grep", in{"pattern": "x", "include": "{a"}, tool.CodeBadArguments, "not a valid glob")
	b.refuse("grep", in{"pattern": "x", "path": "none"}, tool.CodeNotFound, "does not exist")
}

func TestGrepIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("f", strings.Repeat("needle\n", 1000))
	if r := do[grepResult](b, "grep", in{"pattern": "needle"}); !r.Truncated || r.Count != maxMatches || r.Note == "" {
		t.Errorf("%d matches, truncated %v", r.Count, r.Truncated)
	}
	b.put("f", strings.Repeat(strings.Repeat("\x02", 299)+"\n", 150))
	if r := do[grepResult](b, "grep", in{"pattern": "\x02"}); !r.Truncated || r.Count == 0 {
		t.Errorf("%d matches, truncated %v", r.Count, r.Truncated)
	}
}

func TestWalksStop(t *testing.T) {
	t.Parallel()
	b := tree(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(thread.ErrCancelled)
	for name, args := range map[string]in{
		"glob": {"pattern": "**"}, "grep": {"pattern": "x"}, "write": {"path": "new", "content": ""},
	} {
		if _, err := b.callWith(ctx, name, args); !errors.Is(err, thread.ErrCancelled) || tool.AsFault(err).Code != tool.CodeCancelled {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "new")); err == nil {
		t.Error("a cancelled write wrote")
	}
}

func TestLs(t *testing.T) {
	t.Parallel()
	b := tree(t)
	if err := os.Symlink("src/a.go", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := do[lsResult](b, "ls", in{})
	var got []string
	for _, e := range r.Entries {
		got = append(got, e.Name+":"+e.Type)
	}
	want := ".ai:directory .git:directory .hidden:directory link:symlink main.go:file src:directory sub:directory"
	if s := strings.Join(got, " "); s != want || r.Path != "." || r.Total != 7 {
		t.Errorf("got %s\nwant %s", s, want)
	}
	if e := r.Entries[3]; e.Target != "src/a.go" || e.Bytes != nil {
		t.Errorf("link: %+v", e)
	}
	if e := r.Entries[4]; e.Bytes == nil || *e.Bytes != int64(len(b.content("main.go"))) {
		t.Errorf("file: %+v", e)
	}
	if r := do[lsResult](b, "ls", in{"path": "src/deep"}); len(r.Entries) != 2 || r.Path != "src/deep" {
		t.Errorf("got %+v", r)
	}
	b.refuse("ls", in{"path": "main.go"}, tool.CodeBadArguments, "rye/file-system/read")
	b.refuse("ls", in{"path": "none"}, tool.CodeNotFound, "does not exist")
}
