package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func init() {
	systemRoles["full disk"] = onSmallDisk(useFullDisk)
	systemRoles["full from the start"] = onSmallDisk(openOnFullDisk)
	systemRoles["read-only disk"] = onSmallDisk(useReadOnlyDisk)
	systemRoles["no rights"] = withoutRights
	systemRoles["foreign owner"] = func(ctx context.Context, dir string) error {
		return must("use", useOnce(ctx, dir), fs.ErrPermission, filepath.Join(dir, registryFile))
	}
}

// inNamespace runs a role as the user uid of a user namespace of its own, where
// root may mount and others have no more rights than the modes of files give.
func inNamespace(t *testing.T, role string, uid int, dir string) {
	t.Helper()
	attempt := func(attr *syscall.SysProcAttr) error {
		cmd := crowdtest.Command(t, roleVar+"="+role, dir)
		cmd.SysProcAttr = attr
		return cmd.Run()
	}
	err := attempt(&syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getgid(), Size: 1}},
	})
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) && uid == 0 && os.Getuid() == 0 {
		err = attempt(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	}
	switch failed := new(exec.ExitError); {
	case errors.As(err, &failed):
		t.Errorf("%s: %v", role, err)
	case err != nil:
		t.Skipf("the kernel gives no namespace: %v", err)
	}
}

func TestDiskFaults(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"full disk", "full from the start", "read-only disk"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			inNamespace(t, role, 0, t.TempDir())
		})
	}
}

func TestNoRights(t *testing.T) {
	t.Parallel()
	inNamespace(t, "no rights", 1000, t.TempDir())
}

func TestForeignOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a file to somebody else")
	}
	dir := t.TempDir()
	open(t, dir, Options{})
	if err := os.Chown(filepath.Join(dir, registryFile), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	inNamespace(t, "foreign owner", 1000, dir)
}

// onSmallDisk mounts an empty disk of three quarters of a megabyte at the folder.
func onSmallDisk(f func(ctx context.Context, dir string) error) func(ctx context.Context, dir string) error {
	return func(ctx context.Context, dir string) error {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("keep mounts private: %w", err)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=768k"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
		return f(ctx, dir)
	}
}

// fill takes all the space that is left and returns what gives it back.
func fill(dir string) (free func() error, err error) {
	path := filepath.Join(dir, "filler")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return nil, fmt.Errorf("the disk is not full: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

// must holds an error to be of a kind and to name a path.
func must(what string, err, kind error, path string) error {
	if errors.Is(err, kind) && strings.Contains(err.Error(), path) {
		return nil
	}
	return fmt.Errorf("%s: got %w, want %w at %s", what, err, kind, path)
}

// writer makes threads with budgets, one below another, and knows what it made.
type writer struct {
	*Store
	threads int
	budgets int
}

func (w *writer) register(ctx context.Context) error {
	_, _, err := store.Register(ctx, w, newThread("d", ""), claimNothing)
	if err == nil {
		w.threads++
	}
	return err
}

func (w *writer) reserve(ctx context.Context) error {
	err := w.Reserve(ctx, thread.ID(fmt.Sprint("child", w.budgets)), "root", 1, testTime)
	if err == nil {
		w.budgets++
	}
	return err
}

// compare holds the store to what was made, and its files to be sound.
func (w *writer) compare(ctx context.Context) error {
	rows, _, err := w.List(ctx, store.Filter{Limit: store.MaxPage})
	if err != nil {
		return err
	}
	b, err := w.Budget(ctx, "root")
	if err != nil {
		return err
	}
	if len(rows) != w.threads || b.Reserved != thread.Micros(w.budgets) {
		return fmt.Errorf("%d rows of %d, %d reservations of %d", len(rows), w.threads, b.Reserved, w.budgets)
	}
	return w.Check(ctx)
}

func openWriter(ctx context.Context, dir string) (*writer, error) {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return nil, err
	}
	return &writer{Store: s}, s.OpenRoot(ctx, "root", 1<<20, testTime)
}

// until repeats f until it fails.
func until(ctx context.Context, f func(context.Context) error) error {
	for {
		if err := f(ctx); err != nil {
			return err
		}
	}
}

func useFullDisk(ctx context.Context, dir string) error {
	w, err := openWriter(ctx, dir)
	if err != nil {
		return err
	}
	for range 2 {
		free, err := fill(dir)
		if err != nil {
			return err
		}
		err = errors.Join(
			must("register", until(ctx, w.register), syscall.ENOSPC, w.registry.path),
			must("reserve", until(ctx, w.reserve), syscall.ENOSPC, w.ledger.path),
			must("register again", until(ctx, w.register), syscall.ENOSPC, w.registry.path),
			w.compare(ctx), free(), w.register(ctx), w.reserve(ctx), w.compare(ctx))
		if err != nil {
			return err
		}
	}
	made := *w
	if err := w.Close(); err != nil {
		return err
	}
	if made.Store, err = Open(ctx, dir, Options{}); err != nil {
		return err
	}
	return errors.Join(made.compare(ctx), made.Close())
}

func openOnFullDisk(ctx context.Context, dir string) error {
	free, err := fill(dir)
	if err != nil {
		return err
	}
	state := filepath.Join(dir, "threads")
	if _, err := Open(ctx, state, Options{}); err != nil {
		err = must("open", err, syscall.ENOSPC, state)
		if err != nil {
			return err
		}
	} else {
		return errors.New("a store was made on a full disk")
	}
	if err := free(); err != nil {
		return err
	}
	w, err := openWriter(ctx, state)
	if err != nil {
		return err
	}
	return errors.Join(w.register(ctx), w.reserve(ctx), w.compare(ctx), w.Close())
}

func useReadOnlyDisk(ctx context.Context, dir string) error {
	w, err := openWriter(ctx, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(w.register(ctx), w.reserve(ctx), w.Close()); err != nil {
		return err
	}
	// A disk on which a file is open for writing cannot become read-only.
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	_, err = Open(ctx, dir, Options{})
	if err := must("open", err, syscall.EROFS, dir); err != nil {
		return err
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		return err
	}
	if w.Store, err = Open(ctx, dir, Options{}); err != nil {
		return err
	}
	return errors.Join(w.register(ctx), w.reserve(ctx), w.compare(ctx), w.Close())
}

// withoutRights takes the rights to one file or the folder after another.
func withoutRights(ctx context.Context, dir string) error {
	state := filepath.Join(dir, "threads")
	w, err := openWriter(ctx, state)
	if err != nil {
		return err
	}
	if err := errors.Join(w.register(ctx), w.Close()); err != nil {
		return err
	}
	for _, tt := range []struct {
		path string
		mode fs.FileMode
	}{
		{filepath.Join(state, registryFile), 0},
		{filepath.Join(state, registryFile), 0o400},
		{filepath.Join(state, ledgerFile), 0},
		{filepath.Join(state, "registry.lock"), 0o400},
		{filepath.Join(state, "registry.lock.gate"), 0},
		{state, 0o500},
		{state, 0},
	} {
		if err := refusedWithMode(ctx, state, tt.path, tt.mode); err != nil {
			return err
		}
		if err := useOnce(ctx, state); err != nil {
			return fmt.Errorf("with the rights to %s back: %w", tt.path, err)
		}
	}
	return nil
}

// refusedWithMode uses a store while a file of it has another mode.
func refusedWithMode(ctx context.Context, state, path string, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	err = must(fmt.Sprintf("%s with mode %v", path, mode), useOnce(ctx, state), fs.ErrPermission, path)
	return errors.Join(err, os.Chmod(path, info.Mode()))
}

// useOnce opens a store and writes to both halves.
func useOnce(ctx context.Context, dir string) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	_, _, err = store.Register(ctx, s, newThread("d", ""), claimNothing)
	return errors.Join(err, s.OpenRoot(ctx, "other", 1, testTime), s.Close())
}
