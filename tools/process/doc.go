// Package process runs child processes, for threads and for tools, and tells
// whether they live. It works on Linux and macOS.
//
// A thread is a process of its own that outlives whoever started it:
//
//	lock, err := process.Acquire(lockPath)               // nobody else runs it
//	started, err := process.Detach(process.Spec{Lock: lock, …})
//	err = lock.Release()                                 // the child still holds it
//
// and in the child, before anything else:
//
//	lock, err := process.Inherit(process.LockFD, lockPath)
//	defer lock.Release()
//
// The life lock answers whether the thread is being run ([Held]), also for
// processes that somebody else started and when a process number has been given
// to a stranger. [Watch] tells at once when a process ends. [StopGroup] ends
// one, politely first.
//
// A tool's command is attached: [Run] waits for it, bounds its time and output
// and leaves nothing of its process group behind.
package process
