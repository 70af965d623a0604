// Package opening is the first request of a thread: the tools that its model is
// offered, the prompts, and what all of it costs. A thread makes its request with
// it, a dry run and the validator say what that will cost.
package opening
