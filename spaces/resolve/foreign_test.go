package resolve_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// put writes a file below a directory and returns its path.
func put(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const agent = "---\nname: x\ndescription: Helps\ntools: Read\n---\nYou help."

func listed(t *testing.T, r *resolve.Resolver, kind item.Kind) []string {
	t.Helper()
	entries, err := r.All(kind)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, fmt.Sprintf("%s:%s:%s", e.Space, e.ID, e.Folder))
	}
	return ids
}

func TestForeignItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{
		".claude/agents/a.md", ".claude/agents/team/b.md", ".claude/agents/README.md", ".claude/agents/x.txt", ".claude/agents/.hidden/c.md",
		".claude/commands/git/commit.md", ".claude/skills/pdf/SKILL.md", ".claude/skills/pdf/docs/SKILL.md", ".claude/skills/SKILL.md",
		".agents/skills/pdf/SKILL.md", ".codex/skills/csv/SKILL.md", ".claude/settings.md", ".ai/directives/claude/agents/own.md",
	} {
		put(t, w.project, name, agent)
	}
	put(t, w.user, ".claude/agents/a.md", agent)
	put(t, w.user, ".claude/agents/mine.md", agent)
	want := []string{
		"project:claude/agents/own:", "project:claude/agents/a:.claude/agents", "project:claude/agents/team/b:.claude/agents",
		"project:claude/commands/git/commit:.claude/commands", "project:claude/skills/pdf:.claude/skills",
		"project:claude/skills/pdf:.agents/skills", "project:claude/skills/csv:.codex/skills",
		"user:claude/agents/a:.claude/agents", "user:claude/agents/mine:.claude/agents",
	}
	if got := listed(t, w.Resolver, item.Directive); !slices.Equal(got, want) {
		t.Errorf("listed %q", got)
	}
	if got := listed(t, w.Resolver, item.Knowledge); len(got) > 0 {
		t.Errorf("knowledge: %q", got)
	}
	entries, err := w.All(item.Directive)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		again := resolve.Entry{Kind: e.Kind}
		if again.OfRank(e.Rank()); again.Ext != e.Ext || again.Folder != e.Folder {
			t.Errorf("%+v has the rank %d, which is %+v", e, e.Rank(), again)
		}
		if src, err := resolve.Read(w.Roots(), e); err != nil || string(src) != agent {
			t.Errorf("%s: %q, %v", e.Path, src, err)
		}
		if filepath.Join(map[item.Space]string{item.Project: w.project, item.User: w.user}[e.Space], filepath.FromSlash(e.Below())) != e.Path {
			t.Errorf("%s is not at %s", e.Below(), e.Path)
		}
	}
	found, err := w.Find(item.Directive, "claude/agents/a")
	if err != nil || found.Space != item.Project || found.Detached == nil || len(found.Shadows) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if doc, err := found.Directive(); err != nil || doc.Description != "Helps" {
		t.Errorf("%+v, %v", doc, err)
	}
}

func TestOwnItemBeforeForeign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := put(t, w.project, ".ai/directives/claude/agents/a.md", "```xml\n<directive name=\"a\"/>\n```\ngo")
	put(t, w.project, ".claude/agents/a.md", agent)
	found, err := w.Find(item.Directive, "claude/agents/a")
	if err != nil || found.Path != own || found.Detached != nil || len(found.Shadows) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if doc, err := found.Directive(); err != nil || doc.Body != "go" {
		t.Errorf("%+v, %v", doc, err)
	}
}

func TestSkillFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put(t, w.project, ".claude/skills/pdf/SKILL.md", agent)
	script := put(t, w.project, ".claude/skills/pdf/scripts/fill.py", "print(1)")
	put(t, w.project, ".claude/skills/pdf/logo.png", "\x89PNG\xff")
	put(t, w.project, ".claude/skills/pdf/__pycache__/x.pyc", "\xff")
	put(t, w.project, ".claude/skills/pdf/node_modules/x/index.js", "x")
	found, err := w.Find(item.Directive, "claude/skills/pdf")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found.Detached.Files {
		names = append(names, f.Name)
	}
	if strings.Join(names, " ") != "SKILL.md logo.png scripts/fill.py" || found.Detached.Problem != "" {
		t.Errorf("files %q, %s", names, found.Detached.Problem)
	}
	if doc, err := found.Directive(); err != nil || !strings.Contains(doc.After, "scripts/fill.py") || doc.Folder != filepath.Dir(found.Path) {
		t.Errorf("%+v, %v", doc, err)
	}
	file, err := w.Find(item.Knowledge, "claude/skills/pdf/scripts/fill.py")
	if err != nil || file.Path != script || file.Detached.ID != "claude/skills/pdf" || !file.Detached.Part {
		t.Fatalf("%+v, %v", file, err)
	}
	if doc, err := file.Knowledge(); err != nil || doc.Body != "print(1)" {
		t.Errorf("%+v, %v", doc, err)
	}
	if _, err := w.Find(item.Knowledge, "claude/skills/pdf/logo.png"); !errors.As(err, new(*resolve.UnreadableError)) {
		t.Errorf("a picture: %v", err)
	}
	for _, id := range []string{"claude/skills/pdf/none.md", "claude/skills/pdf", "claude/agents/a/b.md", "claude/skills/none/a.md"} {
		if _, err := w.Find(item.Knowledge, id); !errors.As(err, new(*resolve.NotFoundError)) {
			t.Errorf("%s: %v", id, err)
		}
	}
	before := found.Hash
	put(t, w.project, ".claude/skills/pdf/scripts/fill.py", "print(2)")
	if found, err = w.Find(item.Directive, "claude/skills/pdf"); err != nil || found.Hash == before {
		t.Errorf("its hash does not know its files: %v", err)
	}
}

func TestSkillThatCannotBeSigned(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T, skill string){
		"a link": func(t *testing.T, skill string) { link(t, "/etc/passwd", filepath.Join(skill, "x")) },
		"too many": func(t *testing.T, skill string) {
			for i := range 600 {
				put(t, skill, fmt.Sprintf("f%d", i), "")
			}
		},
		"too much": func(t *testing.T, skill string) {
			path := put(t, skill, "large", "")
			if err := os.Truncate(path, 33<<20); err != nil {
				t.Fatal(err)
			}
		},
		"a name of two lines": func(t *testing.T, skill string) { put(t, skill, "a\nb", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			put(t, w.project, ".claude/skills/s/SKILL.md", agent)
			make(t, filepath.Join(w.project, ".claude", "skills", "s"))
			found, err := w.Find(item.Directive, "claude/skills/s")
			if err != nil || found.Detached.Problem == "" {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// Programs that install skills put links to one place into those of the others.
func TestLinkedSkills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put(t, w.project, ".agents/skills/one/SKILL.md", agent)
	link(t, "../../.agents/skills/one", filepath.Join(w.project, ".claude", "skills", "one"))
	link(t, "../.agents/skills", filepath.Join(w.project, ".codex", "skills"))
	if got := listed(t, w.Resolver, item.Directive); !slices.Equal(got, []string{"project:claude/skills/one:.agents/skills"}) {
		t.Errorf("listed %q", got)
	}
	if found, err := w.Find(item.Directive, "claude/skills/one"); err != nil || found.Folder != ".agents/skills" || len(found.Shadows) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestForeignProjectAtHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	put(t, home, ".claude/agents/a.md", agent)
	if got := listed(t, resolve.New(resolve.Roots{Project: home, User: home}), item.Directive); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}

func TestBadForeignFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put(t, w.project, ".claude/agents/a\nb.md", agent)
	put(t, w.project, ".claude/agents/good.md", agent)
	put(t, w.project, ".claude/agents/broken.md", "---\nname: x")
	put(t, w.project, ".claude/agents/huge.md", strings.Repeat("x", 10<<20))
	put(t, w.project, ".claude/skills/folder/SKILL.md/x", "")
	put(t, w.project, ".claude/skills/file", "")
	want := []string{"project:claude/agents/broken:.claude/agents", "project:claude/agents/good:.claude/agents", "project:claude/agents/huge:.claude/agents"}
	if got := listed(t, w.Resolver, item.Directive); !slices.Equal(got, want) {
		t.Errorf("listed %q", got)
	}
	for _, id := range []string{"claude/agents/huge", "claude/skills/folder"} {
		if _, err := w.Find(item.Directive, id); !errors.As(err, new(*resolve.UnreadableError)) {
			t.Errorf("%s: %v", id, err)
		}
	}
	found, err := w.Find(item.Directive, "claude/agents/broken")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := found.Directive(); !errors.As(err, new(*parse.Error)) {
		t.Errorf("%v", err)
	}
	if _, err := w.Find(item.Directive, "claude/agents/../../.ai/config/x"); !errors.Is(err, item.ErrBadID) {
		t.Errorf("%v", err)
	}
}

// TestAttackForeignFolderIsALink: a repository makes a folder of another program's agents a link to keys, state, settings or files outside, or puts such links into it. No id names one of those files.
func TestAttackForeignFolderIsALink(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	put(t, outside, "secret.md", agent)
	put(t, outside, "s/SKILL.md", agent)
	for _, target := range []string{outside, "../.ai/state", "../.ai/config", "../.ai/config/keys", "../.git", "../.ai/state/threads"} {
		w := newWorld(t)
		for _, dir := range []string{".ai/state/threads", ".ai/config/keys", ".ai/state", ".ai/config", ".git"} {
			put(t, w.project, dir+"/secret.md", agent)
			put(t, w.project, dir+"/s/SKILL.md", agent)
		}
		for _, name := range []string{"agents", "commands", "skills"} {
			link(t, target, filepath.Join(w.project, ".claude", name))
		}
		for _, id := range []string{"claude/agents/secret", "claude/commands/secret", "claude/skills/s"} {
			if found, err := w.Find(item.Directive, id); err == nil {
				t.Errorf("%s: %s", target, found.Path)
			}
		}
		if _, err := w.Find(item.Knowledge, "claude/skills/s/SKILL.md"); err == nil {
			t.Errorf("%s: a file of it", target)
		}
		if got := listed(t, w.Resolver, item.Directive); len(got) > 0 {
			t.Errorf("%s: listed %q", target, got)
		}
	}
	w := newWorld(t)
	link(t, filepath.Join(outside, "secret.md"), filepath.Join(w.project, ".claude", "agents", "out.md"))
	link(t, outside, filepath.Join(w.project, ".claude", "commands", "out"))
	for _, id := range []string{"claude/agents/out", "claude/commands/out/secret"} {
		if found, err := w.Find(item.Directive, id); err == nil {
			t.Errorf("%s: %s", id, found.Path)
		}
	}
}
