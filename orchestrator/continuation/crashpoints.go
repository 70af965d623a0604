package continuation

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The crash points of making a successor for a thread that hands over, in order, after
// [scheduler.CrashClaimed]. The end of that thread, and a launch, follow.
const (
	CrashSuccessor  thread.Crashpoint = "handoff.registered" // the successor's row is visible
	CrashSeeded     thread.Crashpoint = "handoff.seeded"     // its transcript has begun
	CrashReady      thread.Crashpoint = "handoff.described"  // its thread.json is written
	CrashHandedOver thread.Crashpoint = "handoff.budget"     // it has what the thread before had left
)

// The crash points of making a copy, in order, after [scheduler.CrashRegistered]. One
// with a message is launched then; one without ends, after the last two.
const (
	CrashReserved thread.Crashpoint = "fork.reserved"  // the copy has its budget
	CrashCopied   thread.Crashpoint = "fork.copied"    // its transcript has the conversation
	CrashRests    thread.Crashpoint = "fork.claimed"   // nobody else runs it
	CrashTold     thread.Crashpoint = "fork.described" // its thread.json is written
)

// Crashpoints lists the crash points of making a successor and of making a copy, in
// order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{
		CrashSuccessor, CrashSeeded, CrashReady, CrashHandedOver, CrashReserved, CrashCopied, CrashRests, CrashTold,
	}
}
