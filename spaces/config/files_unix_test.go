//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestNamedPipeIsNotRead(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, nil)
	dir := filepath.Join(roots.User, ".ai", "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loader.Read().File("pipe.yaml"); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("error %v, want one that says it is not a regular file", err)
	}
}

// TestAttackPipeForProviders: a project has a named pipe where its model providers would lie. Nobody waits for a writer, and the search for a provider says what stands there.
func TestAttackPipeForProviders(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, nil)
	dir := filepath.Join(roots.Project, ".ai", "config", "agent")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "providers"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loader.Read().ProviderNames(); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("error %v, want one that says it is no folder", err)
	}
	if agent, _, err := loader.Read().Agent(); err != nil || agent.Integrity.Mode == "" {
		t.Errorf("agent.yaml: %+v, %v", agent, err)
	}
}
