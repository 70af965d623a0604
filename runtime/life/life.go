// Package life knows whether a thread lives: who holds it, how far away its
// process is, and how that is stopped. Threads of this machine are held by locks
// of files, which end with the process ([Local]); nobody above this package knows
// of files, locks or numbers of processes.
package life

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Life tells who lives, and ends it.
type Life interface {
	// Claim takes a life that nobody holds, or returns an error wrapping ErrHeld.
	Claim(Key) (Hold, error)
	// Held reports whether somebody holds a life, this process included.
	Held(Key) (bool, error)
	// Adopt takes over, in the process of a thread, the life that its starter has
	// handed over. It is called before anything else is started.
	Adopt(Key) (Hold, error)
	// Lease takes a right that one process of the project has at a time and that
	// ends with it, or returns an error wrapping ErrHeld.
	Lease(name string) (Hold, error)

	// Reach tells how far away a process is.
	Reach(thread.Process) Reach
	// Over reports whether a process is known to have ended.
	Over(thread.Process) bool
	// Find is the process of a thread. One that was just started may not be in its row
	// yet, because the database is held, perhaps by that process itself; it is found
	// by how it was started then. Without any it is what the row says.
	Find(thread.Record) thread.Process
	// Watch returns a channel that is closed when a near process has ended. When ctx
	// ends first it stays open.
	Watch(context.Context, thread.Process) <-chan struct{}

	// Ask asks the process of a thread to end by itself, by the signal of a step.
	Ask(thread.Record, How) error
	// Suspended reports whether the process of a thread is near and suspended.
	Suspended(thread.Record) bool
	// Stop ends the process of a thread, and what that has left of its session. While
	// the thread has not ended by its row, its process is signalled only as long as
	// it holds its life; afterwards as long as it is there. Still, which may be nil,
	// is asked before each signal as well.
	Stop(ctx context.Context, rec thread.Record, patience Ladder, still func() bool) (How, error)
	// Leftovers ends every process that a thread has started and left running.
	Leftovers(context.Context, thread.ID) error
}

// Key names a life: that of one run of a thread. Without a run, or with one that does not
// name its life, it is known by the thread alone, as older versions do: somebody holds
// it then who holds the life of any run of the thread.
type Key struct {
	Thread thread.ID
	Run    thread.Run
}

// Of is the key of the life that a row names.
func Of(rec thread.Record) Key { return Key{rec.ThreadID, rec.Run} }

// Hold is a life, or a lease, that this process holds. It ends with the process.
type Hold interface {
	// Release lets go; one that a started process has been handed stays that
	// process's. A second one changes nothing.
	Release() error
	// End is Release when the thread has ended. It forgets what runs before this one
	// have left of their lives.
	End() error
}

// ErrHeld says that somebody else holds a life or a lease.
var ErrHeld = errors.New("somebody else holds it")

// Reach is how far away a process is.
type Reach = process.Reach

// The distances.
const (
	// Near: its number is that process here, which may be signalled. It may just
	// have ended.
	Near = process.Near
	// Walled: another container of this machine runs it. Its life is seen here.
	Walled = process.Walled
	// Bygone: there is none any more.
	Bygone = process.Bygone
	// Elsewhere: another machine runs it. Its life need not be seen here.
	Elsewhere = process.Elsewhere
)

// Running is a started process of a thread, as its starter sees it.
type Running interface {
	Process() thread.Process
	// Done is closed when it has ended, and Exit then tells how.
	Done() <-chan struct{}
	Exit() Exit
}

type (
	// Ladder is how patiently a process is stopped.
	Ladder = process.Ladder
	// How is the step that stopped it.
	How = process.How
	// Exit is how a process ended.
	Exit = process.Exit
)

// The ways a process was stopped.
const (
	AlreadyGone = process.AlreadyGone
	Interrupted = process.Interrupted
	Terminated  = process.Terminated
	Killed      = process.Killed
)
