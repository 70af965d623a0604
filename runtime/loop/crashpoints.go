package loop

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The crash points of a thread between its claim and its end. Those of a turn come
// again with each one, those of a call with each call, and the calls of a turn
// run at the same time.
const (
	CrashClaimed  thread.Crashpoint = "loop.claimed"  // the row says running
	CrashMeta     thread.Crashpoint = "loop.meta"     // and so does thread.json
	CrashToolset  thread.Crashpoint = "loop.toolset"  // capabilities.md is written
	CrashPrepared thread.Crashpoint = "loop.prepared" // the first message is on record, the model can be asked

	CrashHeard     thread.Crashpoint = "loop.heard"     // a message to the thread is in the transcript
	CrashSigned    thread.Crashpoint = "loop.signed"    // all that it reads now are, signed and on disk
	CrashDelivered thread.Crashpoint = "loop.delivered" // and the registry says that they were read

	CrashAsk      thread.Crashpoint = "loop.ask"      // the call of the model is bounded, and about to be made
	CrashLedger   thread.Crashpoint = "loop.ledger"   // its cost is in the ledger
	CrashRegistry thread.Crashpoint = "loop.registry" // and in the registry
	CrashAnswer   thread.Crashpoint = "loop.answer"   // the answer is on record

	CrashCall   thread.Crashpoint = "loop.call"   // the start of a tool call is on record
	CrashChild  thread.Crashpoint = "loop.child"  // a child that it started is on record
	CrashResult thread.Crashpoint = "loop.result" // its result is on record

	CrashHook thread.Crashpoint = "loop.hook" // a hook that has fired is on record

	CrashCheckpoint thread.Crashpoint = "loop.checkpoint"  // the turn is signed and on disk
	CrashAsked      thread.Crashpoint = "loop.asked"       // a question is on record and in the registry
	CrashTold       thread.Crashpoint = "loop.told"        // the answer is on record
	CrashSummary    thread.Crashpoint = "loop.summary"     // a handoff is prepared: its hooks are through, the summary is written
	CrashEdited     thread.Crashpoint = "loop.edited"      // the summary that somebody wants instead is written
	CrashSuccessor  thread.Crashpoint = "loop.successor"   // the successor is made, and waits for this thread to end
	CrashEndReading thread.Crashpoint = "loop.end_reading" // the store refuses messages to the thread, which ends
	CrashDecided    thread.Crashpoint = "loop.decided"     // how the thread ends is decided, and known to nobody else
	CrashChildren   thread.Crashpoint = "loop.children"    // the children of one that did not complete are stopped
	CrashStarted    thread.Crashpoint = "loop.started"     // the thread has ended, and its successor is started
	CrashAfter      thread.Crashpoint = "loop.after"       // the last hooks, behind the end, are through and on record
)

// Crashpoints lists the crash points, in the order in which a thread comes to them first.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{
		CrashClaimed, CrashMeta, CrashToolset, CrashPrepared,
		CrashHeard, CrashSigned, CrashDelivered, CrashAsk, CrashLedger, CrashRegistry, CrashAnswer,
		CrashCall, CrashChild, CrashResult, CrashHook,
		CrashCheckpoint, CrashAsked, CrashTold, CrashSummary, CrashEdited, CrashSuccessor, CrashEndReading, CrashDecided, CrashChildren, CrashStarted, CrashAfter,
	}
}
