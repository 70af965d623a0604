// Package executor runs tools. It is the one seam between who asks for a tool
// (the primary action, the model of a thread, a hook, a run in the background) and
// what stands behind it: all of them find a [Tool] here and hand it to
// [Executor.Run].
//
// A tool item names its executor; the way from the item to what runs it is its
// chain. Whether the item may be used is decided before, by its signature and the
// capabilities of the caller.
package executor
