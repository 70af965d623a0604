package control

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The crash points of a start, in order.
const (
	crashClaimed    thread.Crashpoint = "start.claimed"    // the life lock is held; nothing is in the registry
	crashRegistered thread.Crashpoint = "start.registered" // the row is visible
	crashPrepared   thread.Crashpoint = "start.prepared"   // the budget is reserved
	crashDescribed  thread.Crashpoint = "start.described"  // thread.json is written
	crashLinked     thread.Crashpoint = "start.linked"     // the thread that was resumed names the one that continues it
	crashQueued     thread.Crashpoint = "start.queued"     // the thread is queued, or has a slot at once
)

// The crash points of making a successor for a thread that hands over, in order, after
// [crashClaimed]. What follows is the end of that thread, and a launch.
const (
	crashSuccessor  thread.Crashpoint = "handoff.registered" // the successor's row is visible
	crashHandedOver thread.Crashpoint = "handoff.budget"     // it has what the thread before had left
	crashSeeded     thread.Crashpoint = "handoff.seeded"     // its transcript has begun
	crashReady      thread.Crashpoint = "handoff.described"  // its thread.json is written
)

// The crash points of giving a slot to the first thread in the queue.
const (
	crashTaken    thread.Crashpoint = "queue.taken"    // its life lock is held; the row says nothing of it
	crashAdmitted thread.Crashpoint = "queue.admitted" // it has the slot; nothing runs
)

// The crash points of starting the process of a thread that has a slot.
const (
	crashLaunched thread.Crashpoint = "launch.launched" // the process runs and has the lock
	crashRecorded thread.Crashpoint = "launch.recorded" // its pid is in the row
)

// Crashpoints lists the crash points of starts and stops, in order.
func Crashpoints() []thread.Crashpoint {
	return slices.Concat([]thread.Crashpoint{
		crashClaimed, crashRegistered, crashPrepared, crashDescribed, crashLinked, crashQueued,
		crashSuccessor, crashHandedOver, crashSeeded, crashReady,
		crashTaken, crashAdmitted, crashLaunched, crashRecorded,
	}, stop.Crashpoints())
}
