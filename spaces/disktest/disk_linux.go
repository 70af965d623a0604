package disktest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// inNamespaceVariable tells a test binary that it runs where it may mount.
const inNamespaceVariable = "RYE_TEST_IN_NAMESPACE"

// Isolated reports whether the test may mount disks. Where it may not, it is run again,
// alone, by a process with namespaces of its own, and fails as that one does; a kernel
// that gives none skips it.
func Isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespaceVariable) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inNamespaceVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("this kernel gives no user namespace: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// Disk is a small disk of its own.
type Disk struct {
	Dir string

	t testing.TB
}

// Mount makes a disk of a size, as mount(8) reads it, for as long as the test runs, below
// a folder.
func Mount(t testing.TB, dir, size string) *Disk {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return &Disk{Dir: dir, t: t}
}

func (d *Disk) filler() string { return filepath.Join(d.Dir, ".filler") }

// Fill takes the last byte that is free. A disk that is full stays so.
func (d *Disk) Fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.filler(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if errors.Is(err, syscall.ENOSPC) {
		return
	}
	if err != nil {
		d.t.Error(err)
		return
	}
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for chunk := make([]byte, size); err == nil; {
			_, err = f.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			break
		}
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		d.t.Error(err)
	}
}

// Empty makes room again.
func (d *Disk) Empty() {
	d.t.Helper()
	// A process that another test has just forked may have the file open: its blocks
	// would not be free yet.
	err := os.Truncate(d.filler(), 0)
	if err == nil {
		err = os.Remove(d.filler())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
}
