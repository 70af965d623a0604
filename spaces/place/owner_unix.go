//go:build unix

package place

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// OwnerOf is the user a file belongs to.
func OwnerOf(info fs.FileInfo) (int, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// folderIdentity tells a folder from every other, whatever its path; empty where
// that is not known.
func folderIdentity(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}
