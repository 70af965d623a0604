// Package replay runs a recorded thread again: the loop of threads, with the answers of the
// model and of the tools that are on record. It has no network, runs no tool, starts no
// thread and costs nothing; what it writes goes into a folder of its own. The
// directive, what that is composed of, the hooks and the palette are given to it as of today.
//
// A model answers what it answered then, whatever it is asked now. So a replay tells how
// the request, the calls that are let through and the end differ, and not what the model
// would make of that.
package replay
