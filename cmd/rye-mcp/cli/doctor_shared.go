package cli

import (
	"context"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

const oneMachine = "run the threads of a project on one machine, with the project on a disk of its own"

// shared warns where machines may share the folder without its locks: the kind of the
// file system, or a thread that another machine runs.
func (d *doctor) shared(ctx context.Context, dir string, st *sqlite.Store) []finding {
	var found []finding
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err == nil {
		if kind := networkKind(int64(stat.Type)); kind != "" { //nolint:unconvert // the types differ between systems
			found = append(found, warnf(oneMachine, "%s is on a file system of kind %s, which need not share locks between machines", dir, kind))
		}
	}
	here := d.here()
	rows, _, err := st.List(ctx, store.Filter{States: []thread.State{thread.Running}, Limit: store.MaxPage})
	if err != nil {
		return found // the check of the threads tells why
	}
	for _, rec := range rows {
		if rec.PID != 0 && here.Reach(process.ID(rec.Process)) == process.Elsewhere {
			found = append(found, warnf(oneMachine,
				"thread %s is run by host %q, whose locks need not be seen here; it counts as dead when nothing is heard of it for an hour", rec.ThreadID, rec.Host))
		}
	}
	return few(found)
}

// networkKind names the file systems of Linux that other machines may have as well, by
// statfs(2); empty for others.
func networkKind(magic int64) string {
	if runtime.GOOS != "linux" {
		return ""
	}
	switch uint32(magic) {
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x01021997:
		return "9p"
	case 0x65735546:
		return "FUSE"
	}
	return ""
}
