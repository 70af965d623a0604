//go:build unix

package configfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayKeepOwner reports whether a file of this user can take the place of another.
func mayKeepOwner(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || os.Geteuid() == 0 || int(stat.Uid) == os.Geteuid()
}

// keepOwner gives a file the owner and the group of another. A group that the user is not
// in is not given.
func keepOwner(file *os.File, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if os.Geteuid() != 0 {
		_ = file.Chown(-1, int(stat.Gid)) // its own group is as good
		return nil
	}
	return file.Chown(int(stat.Uid), int(stat.Gid))
}

// lockFile waits for the lock of a folder, which its file holds until it is closed. Its
// holder writes one small file.
func lockFile(folder *os.File) error {
	for {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
