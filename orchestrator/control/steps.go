package control

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The points of a start, in order.
const (
	stepClaimed    thread.Step = "start.claimed"    // the life lock is held; nothing is in the registry
	stepRegistered thread.Step = "start.registered" // the row is visible
	stepPrepared   thread.Step = "start.prepared"   // the budget is reserved
	stepDescribed  thread.Step = "start.described"  // thread.json is written
	stepQueued     thread.Step = "start.queued"     // the thread stands in line, or has a slot at once
)

// The points of giving a slot to the first thread in line.
const (
	stepTaken    thread.Step = "queue.taken"    // its life lock is held; the row says nothing of it
	stepAdmitted thread.Step = "queue.admitted" // it has the slot; nothing runs
)

// The points of starting the process of a thread that has a slot.
const (
	stepLaunched thread.Step = "launch.launched" // the process runs and has the lock
	stepRecorded thread.Step = "launch.recorded" // its pid is in the row
)

// The points of a stop.
const (
	stepIntended    thread.Step = "stop.intended"    // the cancel is on record for the whole tree
	stepInterrupted thread.Step = "stop.interrupted" // every process of the tree has been interrupted
	stepUnqueued    thread.Step = "stop.unqueued"    // those that stood in line are settled
	stepLevel       thread.Step = "stop.level"       // one level of the tree has ended
)

// Steps lists the points of starts and stops, in order.
func Steps() []thread.Step {
	return []thread.Step{
		stepClaimed, stepRegistered, stepPrepared, stepDescribed, stepQueued,
		stepTaken, stepAdmitted, stepLaunched, stepRecorded,
		stepIntended, stepInterrupted, stepUnqueued, stepLevel,
	}
}
