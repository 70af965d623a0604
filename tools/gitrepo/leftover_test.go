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
	t.Parallel()
	scratch := filepath.Join(t.TempDir(), "scratch")
	if removed, err := SweepTemporary(scratch, time.Now()); removed != 0 || err != nil {
		t.Errorf("where there is no folder %d went, %v", removed, err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	own, err := Temporary(scratch)
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
		if err := os.MkdirAll(filepath.Join(scratch, name, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if removed, err := SweepTemporary(scratch, time.Now().Add(leftFor/2)); removed != 0 || err != nil {
		t.Errorf("of young ones %d went, %v", removed, err)
	}
	if removed, err := SweepTemporary(scratch, time.Now().Add(2*leftFor)); removed != 2 || err != nil {
		t.Errorf("%d went, %v", removed, err)
	}
	for name, stays := range made {
		if _, err := os.Stat(filepath.Join(scratch, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
	if dir, err := Temporary(""); err == nil {
		t.Errorf("made %s where anybody may write", dir)
	}
}
