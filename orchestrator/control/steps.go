package control

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The points of a start, in order.
const (
	stepClaimed    thread.Step = "start.claimed"    // the life lock is held; nothing is in the registry
	stepRegistered thread.Step = "start.registered" // the row is visible
	stepPrepared   thread.Step = "start.prepared"   // the budget is reserved
	stepDescribed  thread.Step = "start.described"  // thread.json is written
	stepLinked     thread.Step = "start.linked"     // the thread that was resumed names the one that continues it
	stepQueued     thread.Step = "start.queued"     // the thread stands in line, or has a slot at once
)

// The points of making a successor for a thread that hands over, in order, after
// [stepClaimed]. What follows is the end of that thread, and a launch.
const (
	stepSuccessor  thread.Step = "handoff.registered" // the successor's row is visible
	stepHandedOver thread.Step = "handoff.budget"     // it has what the thread before had left
	stepSeeded     thread.Step = "handoff.seeded"     // its transcript has begun
	stepReady      thread.Step = "handoff.described"  // its thread.json is written
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

// Steps lists the points of starts and stops, in order.
func Steps() []thread.Step {
	return slices.Concat([]thread.Step{
		stepClaimed, stepRegistered, stepPrepared, stepDescribed, stepLinked, stepQueued,
		stepSuccessor, stepHandedOver, stepSeeded, stepReady,
		stepTaken, stepAdmitted, stepLaunched, stepRecorded,
	}, stop.Steps())
}
