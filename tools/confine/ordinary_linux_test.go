package confine

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOrdinaryUser runs the tests of what holds a command as a user without rights, where root
// runs them: root can do without some of what others need for a namespace. They run on a disk that
// is mounted as /tmp often is, with flags that such a user may not take off.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this is an ordinary user")
	}
	const nobody = 65534
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
	if err := errors.Join(copyProgram(program), os.WriteFile(near, []byte("package confine"), 0o644), os.Chown(dir, nobody, nobody)); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ tests, hidden string }{
		"seen": {"TestWhatACommandMay|TestAttackConfined|TestAttackNetwork|TestCredentials", ""},
		// As the program runs. Some attempts, on the process that starts them, fail then anyway.
		"hidden": {"TestWhatACommandMay|TestAttackNetwork|TestCredentials", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out []byte
			// A child that another test forks has the program open for writing until it calls exec
			// (go.dev/issue/22315).
			for err = syscall.ETXTBSY; errors.Is(err, syscall.ETXTBSY); {
				command := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^("+c.tests+")$")
				command.Dir = dir
				command.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, hiddenVariable+"="+c.hidden)
				command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				out, err = command.CombinedOutput()
			}
			if err != nil || !strings.Contains(string(out), "=== RUN   TestWhatACommandMay") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// copyProgram copies the program of this process.
func copyProgram(to string) (err error) {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755) //nolint:gosec // another user runs it
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
