package protect

import (
	"os"
	"path/filepath"
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
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
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
