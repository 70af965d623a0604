package recovery

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The crash points of settling a dead thread, in order. The sequence ends with that of
// package finish.
const (
	crashLocked    thread.Crashpoint = "settle.locked"    // a life of its own is held by the process that settles
	crashReplaced  thread.Crashpoint = "settle.replaced"  // the row has the run of who settles
	crashReturned  thread.Crashpoint = "settle.returned"  // one that never ran is queued again, and that is all
	crashDetached  thread.Crashpoint = "settle.detached"  // the dead process is taken out of the row
	crashLeftovers thread.Crashpoint = "settle.leftovers" // processes that its tools left running are killed
	crashChildren  thread.Crashpoint = "settle.children"  // its children are stopped, by the policy of the project
)

// Crashpoints lists the crash points of the sequence, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{crashLocked, crashReplaced, crashReturned, crashDetached, crashLeftovers, crashChildren}
}
