//go:build unix

package snapshot

import (
	"io/fs"
	"syscall"
)

// state is what changes when a file is written or replaced. Nobody but the system sets
// the time of change.
type state struct {
	modified, changed int64 // nanoseconds since 1970
	inode             uint64
}

func stateOf(info fs.FileInfo) state {
	s := state{modified: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode, s.changed = sys.Ino, changedAt(sys)
	}
	return s
}
