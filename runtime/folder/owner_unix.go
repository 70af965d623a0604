//go:build unix

package folder

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user a file belongs to.
func ownerOf(info fs.FileInfo) (int, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
