package loop

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// The points of a thread between its claim and its end. Those of a turn come
// again with each one, those of a call with each call, and the calls of a turn
// run at the same time.
const (
	StepClaimed  thread.Step = "loop.claimed"  // the row says running
	StepMeta     thread.Step = "loop.meta"     // and so does thread.json
	StepToolset  thread.Step = "loop.toolset"  // capabilities.md is written
	StepPrepared thread.Step = "loop.prepared" // the first message is on record, the model can be asked

	StepAsk      thread.Step = "loop.ask"      // the call of the model is bounded, and about to be made
	StepLedger   thread.Step = "loop.ledger"   // what it cost is in the ledger
	StepRegistry thread.Step = "loop.registry" // and in the registry
	StepAnswer   thread.Step = "loop.answer"   // the answer is on record

	StepCall   thread.Step = "loop.call"   // the start of a tool call is on record
	StepChild  thread.Step = "loop.child"  // a child that it started is on record
	StepResult thread.Step = "loop.result" // its result is on record

	StepHook thread.Step = "loop.hook" // a hook that has fired is on record

	StepCheckpoint thread.Step = "loop.checkpoint" // the turn is signed and on disk
	StepAsked      thread.Step = "loop.asked"      // a question is on record and in the registry
	StepTold       thread.Step = "loop.told"       // the answer is on record
	StepSummary    thread.Step = "loop.summary"    // a handoff is prepared: its hooks are through, the summary is written
	StepSuccessor  thread.Step = "loop.successor"  // the successor is made, and waits for this thread to end
	StepDecided    thread.Step = "loop.decided"    // how the thread ends is decided, and known to nobody else
	StepChildren   thread.Step = "loop.children"   // the children of one that did not complete are stopped
	StepStarted    thread.Step = "loop.started"    // the thread has ended, and its successor is started
	StepAfter      thread.Step = "loop.after"      // the last hooks, behind the end, are through and on record
)

// Steps lists the points, in the order in which a thread comes to them first.
func Steps() []thread.Step {
	return []thread.Step{
		StepClaimed, StepMeta, StepToolset, StepPrepared,
		StepAsk, StepLedger, StepRegistry, StepAnswer,
		StepCall, StepChild, StepResult, StepHook,
		StepCheckpoint, StepAsked, StepTold, StepSummary, StepSuccessor, StepDecided, StepChildren, StepStarted, StepAfter,
	}
}
