package stop

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The crash points of a stop.
const (
	CrashIntended    thread.Crashpoint = "stop.intended"    // the cancel is on record for the whole tree
	CrashInterrupted thread.Crashpoint = "stop.interrupted" // every process of the tree has been interrupted
	CrashUnqueued    thread.Crashpoint = "stop.unqueued"    // those that were queued are settled
	CrashLevel       thread.Crashpoint = "stop.level"       // one level of the tree has ended
)

// Crashpoints lists the crash points of a stop, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashIntended, CrashInterrupted, CrashUnqueued, CrashLevel}
}
