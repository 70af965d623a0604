package stop

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The points of a stop.
const (
	StepIntended    thread.Step = "stop.intended"    // the cancel is on record for the whole tree
	StepInterrupted thread.Step = "stop.interrupted" // every process of the tree has been interrupted
	StepUnqueued    thread.Step = "stop.unqueued"    // those that stood in line are settled
	StepLevel       thread.Step = "stop.level"       // one level of the tree has ended
)

// Steps lists the points of a stop, in order.
func Steps() []thread.Step {
	return []thread.Step{StepIntended, StepInterrupted, StepUnqueued, StepLevel}
}
