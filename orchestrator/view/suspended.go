package view

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Suspended names the processes of those of threads that do nothing because their
// process was suspended, by SIGSTOP or a debugger. No limit of its own ends such a
// thread.
func (v *View) Suspended(rows map[thread.ID]thread.Record) map[thread.ID]int {
	pids := map[thread.ID]int{}
	for _, rec := range rows {
		if !rec.Status.Terminal() && v.Threads.Life.Suspended(rec) {
			pids[rec.ThreadID] = rec.PID
		}
	}
	return pids
}

// SuspendedNext tells what to do about threads whose process is suspended.
func SuspendedNext(pids map[thread.ID]int) string {
	id := slices.Min(slices.Collect(maps.Keys(pids)))
	return fmt.Sprintf("thread %s does nothing, because its process is suspended: the person can continue it with kill -CONT %d; kill_thread ends it", id, pids[id])
}
