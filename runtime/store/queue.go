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
	// Admit admits the first thread in the queue when fewer than slots are occupied. Those
	// whose parent has not ended, or has ended with a handoff, go before all others;
	// within each group the first to come goes first. A parent that waits
	// for its children is alive without a slot: were they to stand behind others, each
	// of these could become one more such parent before a child runs.
	// Claim takes what a runner needs outside the registry: with ErrTaken the next
	// in the queue is tried, any other error aborts. It is called before the
	// transaction that admits, and again with another thread where somebody was faster:
	// the caller lets go of the claim before then, and of the last one when none was
	// admitted. The thread has the given run then.
	Admit(ctx context.Context, slots int, at time.Time, run thread.Run, claim func(thread.Record) error) (rec thread.Record, admitted bool, err error)
	// Occupants returns the threads that occupy a slot, in no particular order.
	Occupants(ctx context.Context) ([]thread.Record, error)
	// QueueLoad counts the slots in use and the threads that wait for one.
	QueueLoad(ctx context.Context) (QueueLoad, error)
}

// Watcher tells that something has changed.
type Watcher interface {
	// Changes sends a value soon after any process committed a change. Values are
	// coalesced: a receiver must look at the rows again, and must also look
	// before its first wait. The channel is closed when ctx ends.
	Changes(ctx context.Context) <-chan struct{}
}

// QueueLoad is how many threads occupy a slot, and how many are queued for one.
type QueueLoad struct {
	Occupied int
	Queued   int
}
