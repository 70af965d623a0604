package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestAncestry(t *testing.T) {
	t.Parallel()
	all := slices.Collect(Ancestry())
	if len(all) < 2 || !slices.Equal(all[0], os.Args) {
		t.Errorf("ancestry %q of %q", all, os.Args)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "a) S 7 (b")
	if err := os.Symlink(sleep, odd); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), odd, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	if parent := parentOf(cmd.Process.Pid); parent != os.Getpid() {
		t.Errorf("the parent is %d, want %d", parent, os.Getpid())
	}
	if parent := parentOf(-1); parent != 0 {
		t.Errorf("the parent of nothing is %d", parent)
	}
}
