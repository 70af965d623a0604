// Package loop runs one thread from its claim to its outcome.
//
//	Run ── claim ── prepare ──┬─ check limits and cancel
//	                          ├─ ask the model (bounded spend, retries)   × turns
//	                          ├─ act: tools, directive_return
//	                          ├─ checkpoint
//	                          └─ hand over, when the context window is nearly full
//	    ── decide the outcome ── finish ── start the successor
//
// The outcome is decided in one place ([decide]) and applied once, by package
// finish, in a context that outlives cancellation.
//
// A tool that does not end with its context is waited for a few seconds and then
// left behind: its call has an error for a result, and the thread ends without
// it. Until the process is gone, which is soon, what was left behind may still
// write files of the project; to the transcript it cannot.
//
// A thread that cannot write its transcript ends in error. Where not even that
// can be written its process ends without an outcome, and recovery decides one
// when there is space again.
package loop
