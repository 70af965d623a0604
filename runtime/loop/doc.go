// Package loop runs one thread from its claim to its outcome.
//
//	Run ── claim ── prepare ──┬─ check limits and cancel
//	                          ├─ ask the model (bounded spend, retries)   × turns
//	                          ├─ act: tools, directive_return
//	                          └─ record cost, checkpoint
//	    ── decide the outcome ── finish
//
// The outcome is decided in one place ([decide]) and applied once, by package
// finish, in a context that outlives cancellation.
package loop
