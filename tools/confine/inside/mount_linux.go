package inside

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mount makes what is to be hidden empty, and what is read-only so. The namespace is
// this process's own, and nothing of it reaches others.
func (s Spec) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	for _, path := range s.Pinned { // a folder on which something is mounted cannot be renamed or removed
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("pin %s: %w", path, err)
		}
	}
	for _, path := range s.ReadOnly {
		if err := makeReadOnly(path); err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	for _, path := range s.Hidden {
		if err := hide(path); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	if err := ownTerminals(); err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	return enterAgain()
}

// ownTerminals puts pseudo-terminals of this process's own in the place of those of the person: a
// process that can write to those can read the windows of the person. Where that cannot be done they are hidden.
func ownTerminals() error {
	err := unix.Mount("devpts", pseudoTerminals, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	if err != nil {
		return hide(pseudoTerminals)
	}
	return nil
}

const pseudoTerminals = "/dev/pts"

// leaveTerminal gives up the terminal that this process was started on, which it could write to as /dev/tty.
func leaveTerminal() error {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil //nolint:nilerr // it has none
	}
	return errors.Join(unix.IoctlSetInt(fd, unix.TIOCNOTTY, 0), unix.Close(fd))
}

// enterAgain goes into the folder of this process by its path: the process stands below the mounts until then, where
// paths that begin at its folder lead past them.
func enterAgain() error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the folder of the command: %w", err)
	}
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("enter %s, the folder of the command: %w", dir, err)
	}
	return nil
}

// makeReadOnly binds a path to itself without the right to write. All else that the mount
// below forbids stays forbidden: a namespace of one's own may not take that off.
func makeReadOnly(path string) error {
	if gone, err := isGone(path); gone || err != nil {
		return err
	}
	if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY)
	for _, f := range []struct{ is, ms uintptr }{
		{unix.ST_NOSUID, unix.MS_NOSUID}, {unix.ST_NODEV, unix.MS_NODEV}, {unix.ST_NOEXEC, unix.MS_NOEXEC},
		{unix.ST_NOATIME, unix.MS_NOATIME}, {unix.ST_NODIRATIME, unix.MS_NODIRATIME}, {unix.ST_RELATIME, unix.MS_RELATIME},
	} {
		if uintptr(fs.Flags)&f.is != 0 { //nolint:gosec // flags are not negative
			flags |= f.ms
		}
	}
	return unix.Mount("", path, "", flags, "")
}

// hide puts an empty, read-only folder over a folder, and /dev/null over a file.
func hide(path string) error {
	var info unix.Stat_t
	err := unix.Stat(path, &info)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return err
	case info.Mode&unix.S_IFMT != unix.S_IFDIR:
		return unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
	}
	return unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0555")
}

func isGone(path string) (bool, error) {
	var info unix.Stat_t
	err := unix.Lstat(path, &info)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return true, nil
	}
	return false, err
}
