package tidy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// inNamespaceVariable tells the test binary that it runs where it may mount.
const inNamespaceVariable = "TIDY_TEST_IN_NAMESPACE"

// TestFullDisk deletes threads on a disk that becomes full before it, and at each crash
// point. What is done is done, what cannot be written is said, and when there is room
// again all of it goes; no sum has changed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getenv(inNamespaceVariable) != "" {
		for _, at := range append([]thread.Crashpoint{never}, tidy.Crashpoints()...) {
			t.Run("full at "+string(at), func(t *testing.T) { deleteOnFullDisk(t, at) })
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
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
}

func deleteOnFullDisk(t *testing.T, at thread.Crashpoint) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	s := openScene(t, disk)
	root := s.running("root", "")
	top := s.running("top", root)
	below := s.ended("below", top)
	s.end(top, thread.Completed, 7)
	other := s.ended("other", "")
	if _, err := s.t.Vacuum(s.ctx); err != nil { // the log has no room left that could be used again
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	var once sync.Once
	full := func() { once.Do(func() { s.noError(fill(filler)) }) }
	s.t.Threads.Crashpoints = func(now thread.Crashpoint) {
		if now == at {
			full()
		}
	}
	if at == never {
		full()
	}
	told, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: top, Agreed: true})
	t.Logf("told %+v, %v", told, err)
	if err != nil && codeOf(err) != tool.CodeDiskFull {
		t.Errorf("with a full disk: %v", err)
	}
	if at == never {
		if err == nil {
			t.Errorf("told %+v", told)
		}
		s.noError(os.Remove(filler))
		s.wantWhole(top, below, other)
		return
	}
	if _, err := s.store.Get(s.ctx, top); err == nil {
		t.Error("the thread is there")
	}
	s.noError(os.Remove(filler))
	_, _, err = s.t.Sweep(s.ctx)
	s.noError(err)
	s.wantGone(top, below)
	s.wantWhole(other)
	s.wantSpent(root, 14, 21)
}

// fill writes a file until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for chunk := make([]byte, size); err == nil; {
			_, err = f.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return errors.Join(err, f.Close())
		}
		err = nil
	}
	return f.Close()
}
