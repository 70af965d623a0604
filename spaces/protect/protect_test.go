package protect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestByName(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]Access{
		"a/b.go": Writing, ".ai/directives/x.md": Writing, ".ai": Writing, ".aix/state": Writing, "ai/state/x": Writing,
		".ai/config": Reading, ".ai/config/agent/agent.yaml": Reading, "a/.AI/CONFIG/x": Reading, ".ai/config/keysmith.yaml": Reading,
		".ai/config/keys/x": Nothing, ".ai/config/a/KEYS": Nothing, ".ai/state": Nothing, "x/.ai/state/threads/y": Nothing,
		".git": Nothing, "a/.git/b": Nothing, ".GIT.": Nothing, ".gıt": Writing, ".gitignore": Writing, "GIT~1/config": Nothing,
		".envrc": Nothing, ".envrc.d/x": Writing, ".claude/settings.local.json": Nothing, ".claude/agents/x.md": Writing, ".vscode/launch.json": Writing,
		".vſcode/TASKS.json": Nothing, ".ai/ſtate/x": Nothing, ".\u200dgit/config": Nothing, ".git:stream/x": Nothing, ".vscode /mcp.json": Nothing,
	} {
		if got := ByName(Split(path)); got != want {
			t.Errorf("%q: %d, want %d", path, got, want)
		}
	}
}

// TestIgnoredCharacters: every character that HFS+ leaves out hides nothing, and its neighbours
// make another name.
func TestIgnoredCharacters(t *testing.T) {
	t.Parallel()
	for _, bounds := range [][2]rune{{0x200c, 0x200f}, {0x202a, 0x202e}, {0x206a, 0x206f}, {0xfeff, 0xfeff}} {
		for r := bounds[0] - 1; r <= bounds[1]+1; r++ {
			want := Nothing
			if r < bounds[0] || r > bounds[1] {
				want = Writing
			}
			if got := ByName([]string{".g" + string(r) + "it"}); got != want {
				t.Errorf("%U: %d, want %d", r, got, want)
			}
		}
	}
}

func TestInAI(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"": false, "a/b": false, ".ai": false, "a/.AI": false, ".ai/directives": true, "a/.Ai./x": true, "a.ai/x": false,
	} {
		if got := InAI(Split(path)); got != want {
			t.Errorf("%q: %t", path, got)
		}
	}
}

// FuzzByName: whatever is appended, prepended or capitalised, what lies below a
// protected path is protected.
func FuzzByName(f *testing.F) {
	f.Add("a/b", "c")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.ContainsRune(before+after, 0) {
			t.Skip()
		}
		for _, path := range []string{".git/config", ".Ai/State", ".mcp.json"} {
			if ByName(Split(before+"/"+path+"/"+after)) != Nothing {
				t.Errorf("%q, %q, %q", before, path, after)
			}
		}
		if ByName(Split(before+"/.ai/config/"+after)) == Writing {
			t.Errorf("settings: %q, %q", before, after)
		}
	})
}

func TestMarks(t *testing.T) {
	t.Parallel()
	user, project := t.TempDir(), t.TempDir()
	key := filepath.Join(user, ".ai", "config", "keys", "signing", "private.pem")
	for _, path := range []string{key, filepath.Join(project, "shared", "x")} {
		writeFile(t, path)
	}
	hard := filepath.Join(project, "note.txt")
	if err := os.Link(key, hard); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("shared", filepath.Join(project, ".git")); err != nil {
		t.Fatal(err)
	}
	m := In(project, user)
	for path, want := range map[string]Access{
		key: Nothing, filepath.Join(user, ".AI", "x"): Nothing, user: Writing, hard: Nothing,
		filepath.Join(project, "shared"): Nothing, filepath.Join(project, "shared", "x"): Writing,
	} {
		info, err := os.Stat(path)
		if err != nil {
			info = nil
		}
		if got := m.Of(path, info); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// TestLinkedTo: what a protected name of a project leads to is protected under its own name too,
// behind a symbolic link as behind a hard one.
func TestLinkedTo(t *testing.T) {
	t.Parallel()
	var fixed []string
	for dir, names := range fixedPaths() {
		for _, name := range names {
			fixed = append(fixed, filepath.ToSlash(filepath.Join(dir, name)))
		}
	}
	for _, name := range []string{".git", ".envrc", ".opencode", ".claude/settings.local.json", ".gemini/settings.json", ".gemini/extensions", ".zed/debug.json", ".ai/state"} {
		if !slices.Contains(fixed, name) {
			t.Errorf("%s is not looked for", name)
		}
	}
	for _, name := range fixed {
		if ByName(Split(name)) != Nothing {
			t.Errorf("%s is not protected by its name", name)
		}
		for how, link := range map[string]func(old, new string) error{"symbolic": os.Symlink, "hard": os.Link} {
			project := t.TempDir()
			target, linked := filepath.Join(project, "target.txt"), filepath.Join(project, filepath.FromSlash(name))
			writeFile(t, target)
			if err := errors.Join(os.MkdirAll(filepath.Dir(linked), 0o755), link(target, linked)); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Fatal(err)
			}
			if got := In(project, "").Of(target, info); got != Nothing {
				t.Errorf("%s, by a %s link: %d", name, how, got)
			}
		}
	}
}

// TestHardLinks: another name of a file below a protected folder is protected as the file is;
// objects of git, which clones share, are no reason.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	files := map[string]Access{
		".git/hooks/pre-commit": Nothing, ".git/config": Nothing, ".git/objects/ab/cd": Writing, ".git/lfs/x": Writing, ".ai/state/threads/x": Nothing,
		".ai/config/agent/agent.yaml": Reading, ".claude/agents/x.md": Writing, "lfs/x": Writing,
	}
	other := filepath.Join(project, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		writeFile(t, filepath.Join(project, filepath.FromSlash(name)))
		if err := os.Link(filepath.Join(project, filepath.FromSlash(name)), filepath.Join(other, strings.ReplaceAll(name, "/", "_"))); err != nil {
			t.Fatal(err)
		}
	}
	m := In(project, "")
	for name, want := range files {
		path := filepath.Join(other, strings.ReplaceAll(name, "/", "_"))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Of(path, info); got != want {
			t.Errorf("another name of %s: %d, want %d", name, got, want)
		}
	}
}

// TestOwnWorkspace: a project that is a workspace of the user, in whose .ai it lies, can be
// worked in; its neighbours cannot. The user space may be reached by a link.
func TestOwnWorkspace(t *testing.T) {
	t.Parallel()
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(t.TempDir(), "user")
	if err := os.Symlink(real, linked); err != nil {
		t.Fatal(err)
	}
	spaces := filepath.Join(real, ".ai", Workspaces)
	project := filepath.Join(spaces, "place", "one", "tree")
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{real, linked} {
		m := In(project, user)
		for path, want := range map[string]Access{
			filepath.Join(project, "x"): Writing, filepath.Join(project, ".git"): Nothing, filepath.Join(spaces, "place", "two", "tree", "x"): Nothing,
			filepath.Join(real, ".ai", "config", "x"): Nothing, spaces: Nothing,
		} {
			if got := m.Of(path, nil); got != want {
				t.Errorf("user space %s, %s: %d, want %d", user, path, got, want)
			}
		}
		if got := In(spaces, user).Of(filepath.Join(spaces, "x"), nil); got != Nothing {
			t.Errorf("the folder of all workspaces as a project: %d", got)
		}
	}
}

// TestHomeAsProject: the user space is protected where the project is the same folder, also before
// there is one.
func TestHomeAsProject(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, project := range []string{home, filepath.Dir(home)} {
		m := In(project, home)
		for _, name := range []string{".ai", ".ai/directives/x.md", ".ai/workspaces", ".ai/workspaces/place/one"} {
			if got := m.Of(filepath.Join(home, filepath.FromSlash(name)), nil); got != Nothing {
				t.Errorf("project %s: %s: %d", project, name, got)
			}
		}
	}
}

// TestPatterns: the globs for other programs name what [ByName] protects, and what lies below it.
func TestPatterns(t *testing.T) {
	t.Parallel()
	all := Patterns()
	for _, want := range []string{"**/.git", "**/.git/**", "**/.mcp.json", "**/.claude/settings*", "**/.claude/settings*/**", "**/.ai/state/**", "**/.ai/config/**/keys"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, pattern := range all {
		path := strings.NewReplacer("**/", "", "/**", "/x", "*", ".json").Replace(pattern)
		if ByName(Split(path)) != Nothing {
			t.Errorf("%s: %s is not protected", pattern, path)
		}
	}
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}
