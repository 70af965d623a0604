//go:build unix

package search

import (
	"io/fs"
	"os"
	"syscall"
)

// othersWrite reports whether other users may write a file or a folder.
func othersWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// isOurs reports whether a file belongs to the user of this process.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
