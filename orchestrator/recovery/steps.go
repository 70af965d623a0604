package recovery

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The points of settling a dead thread, in order. The sequence ends with that of
// package finish.
const (
	stepLocked    thread.Step = "settle.locked"    // the life lock is held by who settles
	stepReplaced  thread.Step = "settle.replaced"  // the row has the run of who settles
	stepReturned  thread.Step = "settle.returned"  // one that never ran is queued again, and that is all
	stepDetached  thread.Step = "settle.detached"  // the dead process is taken out of the row
	stepLeftovers thread.Step = "settle.leftovers" // what its tools left running is killed
	stepChildren  thread.Step = "settle.children"  // its children are stopped, by the policy of the project
)

// Steps lists the points of the sequence, in order.
func Steps() []thread.Step {
	return []thread.Step{stepLocked, stepReplaced, stepReturned, stepDetached, stepLeftovers, stepChildren}
}
