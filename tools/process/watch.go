//go:build linux || darwin

package process

import (
	"context"
	"time"
)

// pollEvery is how often a watch looks where the system cannot tell. It bounds
// how late a death is noticed; a look costs some microseconds.
const pollEvery = 100 * time.Millisecond

// Watch returns a channel that is closed when the process is gone or has become
// a zombie. It may be any process, not only a child of the caller. When ctx
// ends first the watch ends and the channel stays open, so select on both.
//
// The kernel tells at once, and the watch is of the process that has the number
// now, even if the number is used again. On Linux, through a pidfd, it costs a file
// descriptor; on macOS, through a kqueue, a file descriptor and a thread of the
// system. Where neither can be had it looks every 100 ms.
func Watch(ctx context.Context, pid int) <-chan struct{} {
	gone := make(chan struct{})
	if Gone(pid) {
		close(gone)
		return gone
	}
	wait := watcher(pid)
	go func() {
		if wait(ctx) {
			close(gone)
		}
	}()
	return gone
}

// poll looks until the process is gone, which it reports as true, or ctx ends.
func poll(ctx context.Context, pid int) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !Gone(pid) {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
