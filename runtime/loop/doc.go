// Package loop runs one thread from its claim to its outcome.
//
//	Run ── claim ── prepare ──┬─ check limits and cancel
//	                          ├─ ask the model (bounded spend, retries)   × turns
//	                          ├─ act: tools, directive_return
//	                          └─ checkpoint
//	    ── decide the outcome ── finish
//
// The outcome is decided in one place ([decide]) and applied once, by package
// finish, in a context that outlives cancellation.
//
// A tool that does not end with its context holds the thread until it does: a
// thread is never declared ended while something of it may still write. Whoever
// cancels it kills the process in the end.
package loop
