package resolve_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// world is a project, a user and a system space.
type world struct {
	project, user string
	system        fstest.MapFS
	*resolve.Resolver
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{project: t.TempDir(), user: t.TempDir(), system: fstest.MapFS{}}
	w.Resolver = resolve.New(resolve.Roots{Project: w.project, User: w.user, System: w.system})
	return w
}

// write puts a file below <space>/.ai and returns its path.
func write(t *testing.T, space, name, content string) string {
	t.Helper()
	path := filepath.Join(space, ".ai", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Skipf("symbolic links are not to be had here: %v", err)
	}
}

func (w *world) writeSystem(name, content string) {
	w.system[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o444}
}

func TestFirstMatchWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := write(t, w.project, "knowledge/a/b.md", "project")
	write(t, w.user, "knowledge/a/b.md", "user")
	w.writeSystem("knowledge/a/b.yaml", "system: 1")

	found, err := w.Find(item.Knowledge, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if string(found.Content) != "project" || found.Space != item.Project || found.Path != path || found.Ext != ".md" || found.Size != 7 {
		t.Errorf("found %+v", found.Entry)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("project"))); found.Hash != want {
		t.Errorf("hash %q, want %q", found.Hash, want)
	}
	if len(found.Shadows) != 2 || found.Shadows[0].Space != item.User || found.Shadows[1].Space != item.System ||
		found.Shadows[1].Path != "system:knowledge/a/b.yaml" {
		t.Errorf("shadows %+v", found.Shadows)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if found, err = w.Find(item.Knowledge, "a/b"); err != nil || found.Space != item.User || len(found.Shadows) != 1 {
		t.Errorf("without the project's: %+v, %v", found, err)
	}
	if err := os.Remove(filepath.Join(w.user, ".ai", "knowledge", "a", "b.md")); err != nil {
		t.Fatal(err)
	}
	found, err = w.Find(item.Knowledge, "a/b")
	if err != nil || found.Space != item.System || len(found.Shadows) != 0 || !found.ModTime.IsZero() {
		t.Errorf("only the system's: %+v, %v", found, err)
	}
}

func TestExtensionOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.project, "tools/t.ts", "")
	write(t, w.project, "tools/t.sh", "#!/bin/sh\n# rye:signed:x\n# Runs.\n")
	write(t, w.user, "tools/t.py", "")
	found, err := w.Find(item.Tool, "t")
	if err != nil || found.Ext != ".sh" || found.Space != item.Project {
		t.Fatalf("found %+v, %v", found, err)
	}
	if len(found.Shadows) != 2 || found.Shadows[0].Ext != ".ts" || found.Shadows[1].Space != item.User {
		t.Errorf("shadows %+v", found.Shadows)
	}
	if doc, err := found.Tool(); err != nil || doc.Description != "Runs." {
		t.Errorf("tool %+v, %v", doc, err)
	}
	if _, err := found.Directive(); err == nil || !strings.Contains(err.Error(), "is a tool") {
		t.Errorf("reading a tool as a directive: %v", err)
	}
	if _, err := found.Knowledge(); err == nil {
		t.Error("a tool was read as knowledge")
	}
}

func TestFoundParses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.project, "directives/d.md", "```xml\n<directive name=\"d\"/>\n```\ngo")
	bad := write(t, w.project, "directives/bad.md", "\n\n```xml\n<directive/>\n```\n")
	w.writeSystem("knowledge/k.md", "# K\n")
	d, err := w.Find(item.Directive, "d")
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := d.Directive(); err != nil || doc.Body != "go" {
		t.Errorf("directive %+v, %v", doc, err)
	}
	if _, err := d.Tool(); err == nil {
		t.Error("a directive was read as a tool")
	}
	k, err := w.Find(item.Knowledge, "k")
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := k.Knowledge(); err != nil || doc.Title != "K" {
		t.Errorf("knowledge %+v, %v", doc, err)
	}
	b, err := w.Find(item.Directive, "bad")
	if err != nil {
		t.Fatal(err)
	}
	var invalid *parse.Error
	if _, err := b.Directive(); !errors.As(err, &invalid) || invalid.Path != bad || invalid.Line != 4 {
		t.Errorf("got %v, want an error in %s:4", err, bad)
	}
}

func TestBadIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.project, "secret.md", "secret")
	write(t, w.project, "directives/d.md", "x")
	for _, id := range []string{"", "../secret", "/d", `a\b`, "d/", "a//b", "./d", "d\x00"} {
		if _, err := w.Find(item.Directive, id); !errors.Is(err, item.ErrBadID) {
			t.Errorf("Find(%q): %v, want ErrBadID", id, err)
		}
		if _, err := w.FindAny(id); !errors.Is(err, item.ErrBadID) {
			t.Errorf("FindAny(%q): %v, want ErrBadID", id, err)
		}
	}
	if _, err := w.Find("chunk", "d"); err == nil {
		t.Error("an unknown kind found something")
	}
	if _, err := w.All("chunk"); err == nil {
		t.Error("an unknown kind listed something")
	}
}

func TestFindAny(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.user, "knowledge/only.md", "x")
	write(t, w.project, "directives/both.md", "x")
	w.writeSystem("tools/both.py", "x")
	if found, err := w.FindAny("only"); err != nil || found.Kind != item.Knowledge {
		t.Errorf("only: %+v, %v", found, err)
	}
	var ambiguous *resolve.AmbiguousError
	if _, err := w.FindAny("both"); !errors.As(err, &ambiguous) || len(ambiguous.Kinds) != 2 {
		t.Errorf("both: %v", err)
	}
	var missing *resolve.NotFoundError
	if _, err := w.FindAny("botg"); !errors.As(err, &missing) || missing.Kind != "" || len(missing.Nearest) != 1 || missing.Nearest[0] != "both" {
		t.Errorf("botg: %v", err)
	}
}

func TestNotFoundSuggests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{
		"team/review", "team/reviews", "old/review", "Team/Review2", "team/deploy", "x/y/review", "z/review", "q/review",
	} {
		write(t, w.project, "directives/"+name+".md", "x")
	}
	write(t, w.user, "directives/team/review.md", "x")
	var missing *resolve.NotFoundError
	_, err := w.Find(item.Directive, "team/reviw")
	if !errors.As(err, &missing) || missing.Kind != item.Directive {
		t.Fatalf("got %v", err)
	}
	if got := strings.Join(missing.Nearest, " "); got != "team/review Team/Review2 team/reviews" {
		t.Errorf("nearest %q", got)
	}
	_, err = w.Find(item.Directive, "somewhere/else/review")
	if !errors.As(err, &missing) || strings.Join(missing.Nearest, " ") != "old/review q/review team/review x/y/review z/review" {
		t.Errorf("nearest %v", missing.Nearest)
	}
	_, err = w.Find(item.Directive, "nothing-like-it")
	if !errors.As(err, &missing) || missing.Nearest != nil {
		t.Errorf("nearest %v", missing.Nearest)
	}
}

// TestNearestOfPaths: an id that is written as the path of a file, or that is one of another
// kind, leads to the item.
func TestNearestOfPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.project, "directives/team/review.md", "x")
	write(t, w.project, "directives/tools/lint.md", "x")
	write(t, w.project, "tools/say.yaml", "x")
	for _, c := range []struct {
		kind         item.Kind
		id, nearest  string
		others, text string
	}{
		{item.Directive, "team/review.md", "team/review", "", `no directive "team/review.md" in the project, user or system space`},
		{item.Directive, ".ai/directives/team/review.md", "team/review", "", ""},
		{item.Directive, "directives/team/review.md", "team/review", "", ""},
		{item.Directive, "tools/lin", "tools/lint", "", ""},
		{item.Tool, ".ai/tools/say.yml", "say", "", ""},
		{item.Tool, "team/review", "", "directive", `no tool "team/review" in the project, user or system space; there is a directive of this id`},
		{item.Directive, "say.yaml", "", "tool", `no directive "say.yaml" in the project, user or system space; there is a tool "say"`},
		{"", "team/review.md", "team/review", "", ""},
	} {
		_, err := w.Find(c.kind, c.id)
		if c.kind == "" {
			_, err = w.FindAny(c.id)
		}
		var missing *resolve.NotFoundError
		if !errors.As(err, &missing) {
			t.Errorf("%s %s: %v", c.kind, c.id, err)
			continue
		}
		others := ""
		for _, k := range missing.Others {
			others += string(k)
		}
		if got := strings.Join(missing.Nearest, " "); got != c.nearest || others != c.others || c.text != "" && err.Error() != c.text {
			t.Errorf("%s %s: nearest %q, others %q, %v", c.kind, c.id, got, others, err)
		}
	}
}

func TestNoSpaces(t *testing.T) {
	t.Parallel()
	var missing *resolve.NotFoundError
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, roots := range []resolve.Roots{
		{}, {Project: "/does/not/exist", User: t.TempDir()}, {Project: file}, {System: fstest.MapFS{}},
	} {
		r := resolve.New(roots)
		if _, err := r.Find(item.Tool, "a/b"); !errors.As(err, &missing) {
			t.Errorf("%+v: %v", roots, err)
		}
		if entries, err := r.All(item.Tool); err != nil || len(entries) != 0 {
			t.Errorf("%+v: %v, %v", roots, entries, err)
		}
	}
}

func TestProjectAtHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "directives/d.md", "x")
	other := filepath.Join(t.TempDir(), "link")
	link(t, home, other)
	for _, user := range []string{home, other} {
		r := resolve.New(resolve.Roots{Project: home, User: user})
		found, err := r.Find(item.Directive, "d")
		if err != nil || found.Space != item.Project || len(found.Shadows) != 0 {
			t.Errorf("user %s: %+v, %v", user, found, err)
		}
		if entries, err := r.All(item.Directive); err != nil || len(entries) != 1 {
			t.Errorf("user %s: %+v, %v", user, entries, err)
		}
		if r.Roots().User != user {
			t.Errorf("roots %+v", r.Roots())
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.project, "knowledge/fits.md", strings.Repeat("x", parse.MaxBytes))
	write(t, w.project, "knowledge/large.md", strings.Repeat("x", parse.MaxBytes+1))
	w.writeSystem("knowledge/large.md", "small")
	if _, err := w.Find(item.Knowledge, "fits"); err != nil {
		t.Error(err)
	}
	wantUnreadable(t, w, "large", "larger than")
}

func TestAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{
		"b.py", "a/z.yaml", "a/a.sh", "a/z.py", "README.md", "noext", ".hidden/x.py", "node_modules/p/i.js", "__pycache__/c.py", "a/trailing .ts",
	} {
		write(t, w.project, "tools/"+name, "x")
	}
	write(t, w.user, "tools/b.py", "xy")
	w.writeSystem("tools/rye/s.yaml", "a: 1")
	w.writeSystem("config/agent.yaml", "a: 1")
	entries, err := w.All(item.Tool)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, string(e.Space)+":"+e.ID+e.Ext)
		if e.Kind != item.Tool || e.Size == 0 || e.Path == "" || e.ModTime.IsZero() != (e.Space == item.System) {
			t.Errorf("entry %+v", e)
		}
	}
	want := "project:a/a.sh project:a/trailing .ts project:a/z.py project:a/z.yaml project:b.py user:b.py system:rye/s.yaml"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	for _, e := range entries {
		if _, err := w.Find(item.Tool, e.ID); err != nil {
			t.Errorf("%s is listed but not found: %v", e.ID, err)
		}
	}
}

// TestItems lists what All lists but for the records of threads.
func TestItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{
		"knowledge/agent/threads.md", "knowledge/agent/threads/a.md", "knowledge/agent/threads/d/b.md", "knowledge/agent/threadsafe/c.md",
		"knowledge/own/agent/threads/d.md", "directives/agent/threads/e.md",
	} {
		write(t, w.project, name, "x")
	}
	write(t, w.user, "knowledge/agent/threads/f.md", "x")
	for _, kind := range item.Kinds() {
		all, err := w.All(kind)
		if err != nil {
			t.Fatal(err)
		}
		items, err := w.Items(kind)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(all), func(e resolve.Entry) bool { return item.IsThreadRecord(e.Kind, e.ID) })
		if !slices.Equal(items, want) || kind == item.Knowledge && len(want) != len(all)-3 {
			t.Errorf("%s: %+v, want %+v", kind, items, want)
		}
	}
}
