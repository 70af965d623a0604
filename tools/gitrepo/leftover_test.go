package gitrepo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestSweepTemporary: what a dead process has left goes when it is old; what is young, of a
// process that lives, or of others stays.
func TestSweepTemporary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	own, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{ // and whether they stay
		filepath.Base(own): true,
		fmt.Sprintf("rye-git-%d-1", dead.Process.Pid): false,
		"rye-git-1234567": false, // an older version
		"other-1":         true,
	}
	for name := range made {
		if err := os.MkdirAll(filepath.Join(os.TempDir(), name, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if removed, err := SweepTemporary(time.Now().Add(leftFor / 2)); removed != 0 || err != nil {
		t.Errorf("of young ones %d went, %v", removed, err)
	}
	if removed, err := SweepTemporary(time.Now().Add(2 * leftFor)); removed != 2 || err != nil {
		t.Errorf("%d went, %v", removed, err)
	}
	for name, stays := range made {
		if _, err := os.Stat(filepath.Join(os.TempDir(), name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
