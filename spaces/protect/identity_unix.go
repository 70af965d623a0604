//go:build unix

package protect

import (
	"io/fs"
	"syscall"
)

// identity tells files of a machine apart.
type identity struct{ device, inode uint64 }

func identityOf(info fs.FileInfo) identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(stat.Dev), uint64(stat.Ino)} //nolint:unconvert // the types differ between systems
}

// linksOf is how many names a file has.
func linksOf(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink) //nolint:unconvert // the types differ between systems
}
