package config_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileFirstMatch(t *testing.T) {
	t.Parallel()
	loader, roots := accepted(t, map[string]string{
		"user/agent/hooks.yaml":    "user",
		"project/agent/hooks.yaml": "project",
		"user/only.yaml":           "user",
	})
	tests := []struct{ rel, content, path string }{
		{"agent/hooks.yaml", "project", filepath.Join(roots.Project, ".ai", "config", "agent", "hooks.yaml")},
		{"only.yaml", "user", filepath.Join(roots.User, ".ai", "config", "only.yaml")},
		{"agent/agent.yaml", "# How threads run", "system:config/agent/agent.yaml"},
	}
	for _, tt := range tests {
		data, path, err := loader.Read().File(tt.rel)
		if err != nil {
			t.Errorf("%s: %v", tt.rel, err)
			continue
		}
		if !bytes.HasPrefix(data, []byte(tt.content)) || path != tt.path {
			t.Errorf("%s: %.20q from %s, want %q from %s", tt.rel, data, path, tt.content, tt.path)
		}
	}
	if _, _, err := loader.Read().File("none.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: error %v, want fs.ErrNotExist", err)
	}
}

func TestFileRefusesPaths(t *testing.T) {
	t.Parallel()
	loader, _ := spaces(t, map[string]string{"project/a.yaml": "x"})
	for _, rel := range []string{"", ".", "..", "../a.yaml", "/etc/passwd", "a/../a.yaml", "a//b", `..\a.yaml`, "a\x00.yaml", "a\n"} {
		if _, _, err := loader.Read().File(rel); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: error %v, want fs.ErrInvalid", rel, err)
		}
	}
}

func TestFilesStayInTheirSpace(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, map[string]string{"user/inside.yaml": "max_output_tokens: 7"})
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte("max_output_tokens: 9"), 0o644); err != nil {
		t.Fatal(err)
	}
	configDir := filepath.Join(roots.User, ".ai", "config")
	if err := os.Mkdir(filepath.Join(configDir, "agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(configDir, "agent", "agent.yaml")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loader.Read().Agent(); err == nil || !strings.Contains(err.Error(), link) {
		t.Errorf("link to the outside: error %v, want one that names the file", err)
	}
	if _, _, err := loader.Read().File("agent/agent.yaml"); err == nil {
		t.Error("File followed a link to the outside")
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "inside.yaml"), link); err != nil {
		t.Fatal(err)
	}
	if agent, _, err := loader.Read().Agent(); err != nil || agent.MaxOutputTokens != 7 {
		t.Errorf("link within the space: %d, error %v", agent.MaxOutputTokens, err)
	}
}

func TestOnlyRegularFilesOfSaneSize(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, map[string]string{"user/large.yaml": strings.Repeat("#", 1<<20+1)})
	if _, _, err := loader.Read().File("large.yaml"); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("large file: error %v", err)
	}
	if err := os.Mkdir(filepath.Join(roots.User, ".ai", "config", "dir.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loader.Read().File("dir.yaml"); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("folder: error %v", err)
	}
}
