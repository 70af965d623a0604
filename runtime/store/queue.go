package store

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Queue decides which threads have one of the slots that threads run in.
type Queue interface {
	// Enqueue puts a created thread, which everything is prepared for, in the queue for
	// one of the slots that threads run in. It is admitted at once when fewer than
	// slots are occupied, nobody in the queue goes before it (see Admit) and it has not
	// been asked to stop; the row says so. Repeating it changes nothing; a thread that
	// is past created is refused with thread.ErrSettled, one that the thread it
	// continues does not name with ErrNotLinked.
	Enqueue(ctx context.Context, id thread.ID, slots int, at time.Time) (thread.Record, error)
	// Next returns the first thread in the queue behind a place, and its own; one without
	// id when there is none, or no fewer than slots are occupied. Those
	// whose parent has not ended, or has ended with a handoff, and is no set that is a
	// root, go before all others;
	// within each group the first to come goes first. A parent that waits
	// for its children is alive without a slot: were they to stand behind others, each
	// of these could become one more such parent before a child runs.
	Next(ctx context.Context, slots int, behind QueuePlace) (thread.Record, QueuePlace, error)
	// Admit gives a thread a slot and another run, if it is still in the queue and fewer
	// than slots are occupied; else admitted is false. By then the caller has what a
	// runner needs outside the store. See [Admit].
	Admit(ctx context.Context, id thread.ID, slots int, at time.Time, run thread.Run) (rec thread.Record, admitted bool, err error)
	// Occupants returns the threads that occupy a slot, in no particular order.
	Occupants(ctx context.Context) ([]thread.Record, error)
	// QueueLoad counts the slots in use, the threads that wait for one, the running
	// sets, and the threads that are to be tried again.
	QueueLoad(ctx context.Context) (QueueLoad, error)
}

// QueuePlace is how far somebody has come in the queue; the zero value is its
// beginning. Its numbers mean something to the store alone.
type QueuePlace struct {
	Group    int
	Position int64
}

// Watcher tells that something has changed.
type Watcher interface {
	// Changes sends a value soon after any process committed a change. Values are
	// coalesced: a receiver must look at the rows again, and must also look
	// before its first wait. The channel is closed when ctx ends.
	Changes(ctx context.Context) <-chan struct{}
	// Milestones is Changes without the commits between the milestones of a thread: that it is
	// registered, is given a slot and a process, and counts what it has spent. Most are of
	// those, many processes listen, and each that is told looks at the rows. An engine may tell of
	// all.
	Milestones(ctx context.Context) <-chan struct{}
}

// QueueLoad is how many threads occupy a slot, and how many are queued for one.
type QueueLoad struct {
	Occupied int
	Queued   int
	Sets     int // running fan-out sets, see [Sets]
	Retries  int // failed threads that are to be tried again, now or later, see [Retries]
}
