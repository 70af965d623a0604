//go:build unix

package configfile

import (
	"io/fs"
	"os"
	"syscall"
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
