//go:build !unix

package snapshot

import "io/fs"

// state is what changes when a file is written or replaced.
type state struct {
	modified, changed int64 // nanoseconds since 1970
	inode             uint64
}

func stateOf(info fs.FileInfo) state {
	at := info.ModTime().UnixNano()
	return state{modified: at, changed: at}
}
