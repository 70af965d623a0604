package process

import "context"

// watcher polls: Go's poller does not offer the process events of kqueue(2).
func watcher(pid int) func(context.Context) bool {
	return func(ctx context.Context) bool { return poll(ctx, pid) }
}
