package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// bench is a project on disk with the tools on it.
type bench struct {
	t     *testing.T
	dir   string
	user  string // the folder of the user's .ai
	mask  tool.Masker
	tools *tool.Registry
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchOf(t, t.TempDir(), t.TempDir())
}

// benchOf is one whose project and user space may be the same.
func benchOf(t *testing.T, dir, user string) *bench {
	t.Helper()
	r, err := tool.NewRegistry(Tools(Deps{User: user})...)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, dir: dir, user: user, tools: r}
}

func (b *bench) put(path, content string) {
	b.t.Helper()
	full := filepath.Join(b.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) content(path string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, path))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) callWith(ctx context.Context, name string, in any) (any, error) {
	b.t.Helper()
	args, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	found, ok := b.tools.Get("rye/file-system/" + name)
	if !ok {
		b.t.Fatalf("no tool %s", name)
	}
	out, err := found.Call(ctx, tool.Env{Project: b.dir, Mask: b.mask}, args)
	if err == nil {
		if raw, err := json.Marshal(out); err != nil || len(raw) > 40<<10 {
			b.t.Errorf("%s: a result of %d bytes, %v", name, len(raw), err)
		}
	}
	return out, err
}

type in map[string]any

// do calls a tool that must succeed and returns its typed result.
func do[R any](b *bench, name string, args in) R {
	b.t.Helper()
	out, err := b.callWith(b.t.Context(), name, args)
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, args, err)
	}
	switch out := out.(type) {
	case *R:
		return *out
	case R:
		return out
	}
	b.t.Fatalf("%s gave a %T", name, out)
	panic("unreachable")
}

// refuse calls a tool that must fail with the code and words, and returns the
// details of the fault.
func (b *bench) refuse(name string, args in, code tool.Code, words string) map[string]any {
	b.t.Helper()
	out, err := b.callWith(b.t.Context(), name, args)
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok {
		b.t.Fatalf("%s %v: got %v, %v; want a fault", name, args, out, err)
	}
	if f.Code != code || !strings.Contains(f.Message+" "+f.Hint, words) {
		b.t.Errorf("%s %v: got %s: %s %s; want %s with %q", name, args, f.Code, f.Message, f.Hint, code, words)
	}
	return f.Details
}

// ids reads a file and returns the line ids by line text.
func (b *bench) ids(path string) map[string]string {
	b.t.Helper()
	ids := make(map[string]string)
	for row := range strings.Lines(do[readResult](b, "read", in{"path": path}).Content) {
		m := regexp.MustCompile(`^\d+:([0-9a-f]{6})\|(.*)\n$`).FindStringSubmatch(row)
		if m == nil {
			b.t.Fatalf("a row of another form: %q", row)
		}
		ids[m[2]] = m[1]
	}
	return ids
}

func TestRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a/b.txt", "one\n  two|2\nthree")
	r := do[readResult](b, "read", in{"path": "a/b.txt"})
	if r.TotalLines != 3 || r.Remaining != 0 || !regexp.MustCompile(`^1:[0-9a-f]{6}\|one\n2:[0-9a-f]{6}\|  two\|2\n3:[0-9a-f]{6}\|three\n$`).MatchString(r.Content) {
		t.Errorf("got %+v", r)
	}
	r = do[readResult](b, "read", in{"path": "./a/../a/b.txt", "offset": 2, "limit": 1})
	if !strings.HasPrefix(r.Content, "2:") || strings.Count(r.Content, "\n") != 1 || r.Remaining != 1 || r.NextOffset != 3 || r.Path != "a/b.txt" {
		t.Errorf("page: %+v", r)
	}
	if r := do[readResult](b, "read", in{"path": filepath.Join(b.dir, "a/b.txt")}); r.Path != "a/b.txt" {
		t.Errorf("absolute path: %+v", r)
	}
	b.refuse("read", in{"path": "a/b.txt", "offset": 4}, tool.CodeBadArguments, "has 3 lines")
	b.refuse("read", in{"path": "a/b.txt", "offset": 0}, tool.CodeBadArguments, `"offset" must be >= 1`)
	b.refuse("read", in{"path": "a"}, tool.CodeBadArguments, "is a directory")
	b.refuse("read", in{"path": "nope"}, tool.CodeNotFound, "rye/file-system/glob")
	b.refuse("read", in{"path": "a/b.txt/c"}, tool.CodeToolFailed, "not a directory")
	b.refuse("read", in{"pth": "x"}, tool.CodeBadArguments, `did you mean "path"`)

	b.put("empty", "")
	if r := do[readResult](b, "read", in{"path": "empty"}); r.TotalLines != 0 || r.Note != "the file is empty" {
		t.Errorf("empty: %+v", r)
	}
	b.put("image.png", "\x89PNG\r\n\x1a\n\x00\x00")
	b.refuse("read", in{"path": "image.png"}, tool.CodeUnsupported, "image/png that cannot be decoded")
	b.put("latin", "caf\xe9\n")
	if r := do[readResult](b, "read", in{"path": "latin"}); !strings.Contains(r.Content, "caf\uFFFD") {
		t.Errorf("latin: %+v", r)
	}
}

func TestReadBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("long", strings.Repeat("ä", 5000)+"\nx\n")
	r := do[readResult](b, "read", in{"path": "long"})
	if len(r.Content) > 2*maxShown || !strings.Contains(r.Content, "[line cut, 10000 bytes in all]") {
		t.Errorf("long line: %d bytes", len(r.Content))
	}
	// Control characters take six bytes each in JSON; a page still fits, and
	// the pages together are the file.
	b.put("many", strings.Repeat(strings.Repeat("\x01", 90)+"<\n", 1500))
	seen, offset := 0, 1
	for {
		r := do[readResult](b, "read", in{"path": "many", "offset": offset})
		seen += strings.Count(r.Content, "\n")
		if r.NextOffset == 0 {
			break
		}
		offset = r.NextOffset
	}
	if seen != 1500 {
		t.Errorf("the pages have %d lines, want 1500", seen)
	}
	sparse, err := os.Create(filepath.Join(b.dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sparse.Truncate(maxFileBytes+1), sparse.Close()); err != nil {
		t.Fatal(err)
	}
	b.refuse("read", in{"path": "sparse"}, tool.CodeUnsupported, "16 MiB")
}

func TestConfinement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	away := t.TempDir()
	secret := filepath.Join(away, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.put("sub/inner", "inner\n")
	for name, target := range map[string]string{
		"abs": secret, "absdir": away, "up": "../x", "in": "sub/inner", "indir": "sub", "sub/up": "../sub/inner", "loop": "loop",
		"absin": filepath.Join(b.dir, "sub/inner"),
	} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"../x", "/etc/passwd", secret, "abs", "absdir/secret", "up", "absin", b.dir + "x/y", "sub/../../x", ".."} {
		b.refuse("read", in{"path": path}, tool.CodeOutsideProject, "project")
		b.refuse("write", in{"path": path, "content": "x"}, tool.CodeOutsideProject, "project")
		b.refuse("edit_lines", in{"path": path, "changes": []in{{"line_id": "000000", "new_content": ""}}}, tool.CodeOutsideProject, "project")
		b.refuse("ls", in{"path": path}, tool.CodeOutsideProject, "project")
		b.refuse("glob", in{"path": path, "pattern": "*"}, tool.CodeOutsideProject, "project")
		b.refuse("grep", in{"path": path, "pattern": "x"}, tool.CodeOutsideProject, "project")
	}
	b.refuse("glob", in{"pattern": "../*"}, tool.CodeOutsideProject, "project")
	b.refuse("glob", in{"pattern": "/etc/*"}, tool.CodeOutsideProject, "project")
	b.refuse("read", in{"path": "a\x00b"}, tool.CodeBadArguments, "NUL")
	b.refuse("write", in{"path": "loop", "content": "x"}, tool.CodeToolFailed, "loop")
	for _, path := range []string{"in", "indir/inner", "indir/up"} {
		if r := do[readResult](b, "read", in{"path": path}); !strings.HasSuffix(r.Content, "|inner\n") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	// Writing through links changes their target and keeps them.
	do[writeResult](b, "write", in{"path": "indir/up", "content": "changed"})
	if info, err := os.Lstat(filepath.Join(b.dir, "sub/up")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if got := b.content("sub/inner"); got != "changed" {
		t.Errorf("behind the link stands %q", got)
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("the file outside was touched: %q, %v", data, err)
	}
}

func TestNoProject(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", "relative", filepath.Join(t.TempDir(), "gone")} {
		for _, f := range Tools(Deps{}) {
			args := json.RawMessage(`{"path":"x","pattern":"x","content":"x","changes":[]}`)
			_, err := f.Call(t.Context(), tool.Env{Project: dir}, pick(t, f.Definition().Schema, args))
			if got := tool.AsFault(err); got == nil || got.Code != tool.CodeNoProject {
				t.Errorf("%s in %q: got %v", f.Definition().ID, dir, err)
			}
		}
	}
}

// pick keeps of args what the schema declares.
func pick(t *testing.T, schema, args json.RawMessage) json.RawMessage {
	t.Helper()
	var s struct{ Properties map[string]any }
	var all map[string]any
	if err := errors.Join(json.Unmarshal(schema, &s), json.Unmarshal(args, &all)); err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if _, ok := s.Properties[name]; !ok {
			delete(all, name)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := do[writeResult](b, "write", in{"path": "new/deep/f.txt", "content": "hä\n"})
	if want := (writtenFile{"new/deep/f.txt", 4, true}); len(r.Files) != 1 || r.Files[0] != want {
		t.Errorf("got %+v, want %+v", r.Files, want)
	}
	if err := os.Chmod(filepath.Join(b.dir, "new/deep/f.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	r = do[writeResult](b, "write", in{"files": []in{{"path": "new/deep/f.txt", "content": ""}, {"path": "g", "content": "g"}}})
	if len(r.Files) != 2 || r.Files[0].Created || !r.Files[1].Created || b.content("new/deep/f.txt") != "" || b.content("g") != "g" {
		t.Errorf("got %+v", r.Files)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "new/deep/f.txt")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// A file closed to everybody stays so.
	if err := os.Chmod(filepath.Join(b.dir, "g"), 0); err != nil {
		t.Fatal(err)
	}
	if r := do[writeResult](b, "write", in{"path": "g", "content": "h"}); r.Files[0].Created {
		t.Errorf("got %+v", r.Files)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "g")); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	b.refuse("write", in{"path": "other/f", "content": "", "create_dirs": false}, tool.CodeNotFound, "create_dirs")
	b.refuse("write", in{"path": "g/f", "content": ""}, tool.CodeToolFailed, "not a directory")
	b.refuse("write", in{"path": "new", "content": ""}, tool.CodeBadArguments, "is a directory")
	b.refuse("write", in{"path": "x"}, tool.CodeBadArguments, `missing property "content"`)
	b.refuse("write", in{"content": "x"}, tool.CodeBadArguments, `missing property "path"`)
	b.refuse("write", in{}, tool.CodeBadArguments, `missing property "path"`)
	b.refuse("write", in{"path": "x", "content": "", "files": []in{{"path": "y", "content": ""}}}, tool.CodeBadArguments, "both")
	b.refuse("write", in{"files": []in{{"path": "y", "content": ""}, {"path": "./y", "content": ""}}}, tool.CodeBadArguments, "twice")
	// One bad file stops all of them.
	b.refuse("write", in{"files": []in{{"path": "y", "content": ""}, {"path": "../z", "content": ""}}}, tool.CodeOutsideProject, "../z")
	if _, err := os.Stat(filepath.Join(b.dir, "y")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("y was written although its call was refused: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(b.dir, ".rye-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAppend(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	b := newBench(t)
	r := do[writeResult](b, "write", in{"path": "log/a", "content": "one\n", "mode": "append"})
	if want := (writtenFile{"log/a", 4, true}); r.Files[0] != want {
		t.Errorf("got %+v, want %+v", r.Files, want)
	}
	if err := os.Chmod(filepath.Join(b.dir, "log/a"), 0o750); err != nil {
		t.Fatal(err)
	}
	r = do[writeResult](b, "write", in{"mode": "append", "files": []in{{"path": "log/a", "content": "two"}, {"path": "b", "content": "b", "mode": "replace"}}})
	if want := (writtenFile{"log/a", 7, false}); r.Files[0] != want || b.content("log/a") != "one\ntwo" || b.content("b") != "b" {
		t.Errorf("got %+v, %q", r.Files, b.content("log/a"))
	}
	do[writeResult](b, "write", in{"files": []in{{"path": "b", "content": "c", "mode": "append"}, {"path": "log/a", "content": "", "mode": "append"}}})
	if info, err := os.Stat(filepath.Join(b.dir, "log/a")); err != nil || info.Mode().Perm() != 0o750 || b.content("b") != "bc" || b.content("log/a") != "one\ntwo" {
		t.Errorf("got %v, %q, %v", info, b.content("b"), err)
	}
	b.put("bytes", "caf\xe9\x00")
	do[writeResult](b, "write", in{"path": "bytes", "content": "x", "mode": "append"})
	if got := b.content("bytes"); got != "caf\xe9\x00x" {
		t.Errorf("bytes are %q", got)
	}
	b.refuse("write", in{"path": "log/a", "content": "x", "mode": "prepend"}, tool.CodeBadArguments, "append")
	b.refuse("write", in{"path": "log", "content": "x", "mode": "append"}, tool.CodeBadArguments, "is a directory")
	b.refuse("write", in{"path": "new/b", "content": "x", "mode": "append", "create_dirs": false}, tool.CodeNotFound, "create_dirs")
	b.refuse("write", in{"path": "log/a", "content": strings.Repeat("x", maxFileBytes), "mode": "append"}, tool.CodeUnsupported, "16 MiB")
}

func TestFailedReplaceLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("dir/f", "old")
	p, err := (&space{}).open(tool.Env{Project: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	pl, err := p.find("new", protect.Writing)
	if err != nil {
		t.Fatal(err)
	}
	defer pl.Close()
	pl.name = "dir"
	// The new content is on disk already when it cannot take the folder's place.
	if f := tool.AsFault(pl.replace([]byte("new"))); f == nil || f.Code != tool.CodeToolFailed {
		t.Errorf("got %v", f)
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) != 1 || b.content("dir/f") != "old" {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestEditsAtOnceAllCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const lines = 30
	var content strings.Builder
	for i := range lines {
		fmt.Fprintf(&content, "line %d\n", i)
	}
	b.put("f", content.String())
	ids := b.ids("f")
	var calls sync.WaitGroup
	for i := range lines {
		calls.Go(func() {
			_, err := b.callWith(t.Context(), "edit_lines", in{"path": "f", "changes": []in{
				{"line_id": ids[fmt.Sprintf("line %d", i)], "new_content": fmt.Sprintf("done %d", i)}}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if got, want := b.content("f"), strings.ReplaceAll(content.String(), "line", "done"); got != want {
		t.Errorf("got\n%s", got)
	}
}
