package pgtest

import (
	"os"

	"golang.org/x/sys/unix"
)

// memory is the folder of a file system in memory.
const memory = "/dev/shm"

// room is how much must be free there. A cluster with its log and ten databases takes
// 0.2 GB, and the packages of a run have one each.
const room = 2 << 30

// roomInMemory reports whether a cluster may lie in memory. Containers often have 64 MB there.
func roomInMemory() bool {
	var stat unix.Statfs_t
	if err := unix.Statfs(memory, &stat); err != nil || stat.Type != unix.TMPFS_MAGIC {
		return false
	}
	if stat.Bavail*uint64(stat.Bsize) < room { //nolint:gosec // a size of blocks
		return false
	}
	probe, err := os.MkdirTemp(memory, "rye-pg-")
	return err == nil && os.Remove(probe) == nil
}
