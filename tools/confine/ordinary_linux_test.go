package confine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/process/guesttest"
)

// TestOrdinaryUser runs the tests of what holds a command as a user without rights, where root
// runs them: root can do without some of what others need for a namespace. They run on a disk that
// is mounted as /tmp often is, with flags that such a user may not take off.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	who := guesttest.Credential()
	if who == nil {
		t.Skip("this is an ordinary user")
	}
	dir, err := os.MkdirTemp("", "confine-") //nolint:usetesting // its folders are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	switch err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOATIME, "size=64m"); {
	case err == nil:
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	case !errors.Is(err, syscall.EPERM): // a container's root may mount nothing
		t.Fatal(err)
	}
	program := filepath.Join(dir, "confine.test")
	// An attempt reads this.
	near := filepath.Join(dir, "confine.go")
	if err := errors.Join(guesttest.Copy(program), os.WriteFile(near, []byte("package confine"), 0o644), os.Chown(dir, guesttest.ID, guesttest.ID)); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ tests, hidden string }{
		"seen": {"TestWhatACommandMay|TestAttackConfined|TestAttackTerminals|TestAttackBelowTheMounts|TestAttackNetwork|TestCredentials", ""},
		// As the program runs. Some attempts, on the process that starts them, fail then anyway.
		"hidden": {"TestWhatACommandMay|TestAttackNetwork|TestCredentials", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out []byte
			err := guesttest.Start(func() (err error) {
				command := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^("+c.tests+")$")
				command.Dir = dir
				command.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, hiddenVariable+"="+c.hidden)
				command.SysProcAttr = &syscall.SysProcAttr{Credential: who}
				out, err = command.CombinedOutput()
				return err
			})
			if err != nil || !strings.Contains(string(out), "=== RUN   TestWhatACommandMay") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
