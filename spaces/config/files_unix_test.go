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
