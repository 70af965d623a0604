package scheduler

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The crash points of a start, in order.
const (
	CrashClaimed    thread.Crashpoint = "start.claimed"    // the life lock is held; nothing is in the registry
	CrashRegistered thread.Crashpoint = "start.registered" // the row is visible
	CrashPrepared   thread.Crashpoint = "start.prepared"   // the budget is reserved
	CrashDescribed  thread.Crashpoint = "start.described"  // thread.json is written
	CrashLinked     thread.Crashpoint = "start.linked"     // the thread that was resumed names the one that continues it
	CrashQueued     thread.Crashpoint = "start.queued"     // the thread is queued, or has a slot at once
)

// The crash points of giving a slot to the first thread in the queue.
const (
	CrashTaken    thread.Crashpoint = "queue.taken"    // its life lock is held; the row says nothing of it
	CrashAdmitted thread.Crashpoint = "queue.admitted" // it has the slot; nothing runs
)

// The crash points of starting the process of a thread that has a slot.
const (
	CrashLaunched thread.Crashpoint = "launch.launched" // the process runs and has the lock
	CrashRecorded thread.Crashpoint = "launch.recorded" // its pid is in the row
)

// Crashpoints lists the crash points of starts, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{
		CrashClaimed, CrashRegistered, CrashPrepared, CrashDescribed, CrashLinked, CrashQueued, CrashTaken, CrashAdmitted, CrashLaunched, CrashRecorded,
	}
}
