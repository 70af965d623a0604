// Package tidy takes threads away that nobody needs any more, and keeps what grows
// within bounds.
//
// A deletion is a record of intent in the store, with which the rows are gone for
// everybody; then the budgets, the files, and the end of the record follow. A crash
// between any two leaves the record, and whoever comes next goes on: the next deletion,
// or the sweep of a server. Only whole sets go: a chain with everything below it, all of
// which has ended.
package tidy

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Belonging is something that another room keeps for threads beside their rows and
// records, such as a workspace. That room says how it goes.
type Belonging struct {
	Name string // for messages: "the workspace"
	// Remove takes it away, as far as it is there. It is called after the row of the
	// thread is gone, and again after a crash. An error keeps the deletion open.
	Remove func(ctx context.Context, rec thread.Record) error
	// Blocks says why a thread should not go yet; empty: nothing speaks against it. A
	// deletion with force goes on all the same. It may be nil.
	Blocks func(ctx context.Context, rec thread.Record) (why string)
	// Apart says that Remove needs nothing of the thread's files: they go also where it fails.
	Apart bool
	// Count is how much of it goes with some threads, and Tell says that: "3 entries of
	// memory". Both may be nil.
	Count func(ctx context.Context, ids []thread.ID) (int, error)
	Tell  func(n int) string
}

// Tidier takes threads away.
type Tidier struct {
	Threads  *threads.Threads
	Settings *settings.Source
	Stop     *stop.Stopper
	// Belongings go with their threads, in this order.
	Belongings []Belonging
	// Jobs are what a sweep does, in this order, beside what is of this room.
	Jobs []Job
	// Schedule is when servers sweep; nil: as the settings say.
	Schedule func() (Schedule, error)
	// Forget takes knowledge entries out of the search index; nil where there is none.
	Forget func(ctx context.Context, ids []string) error
	// Compact make what lies beside the databases as small as it can be: the search index,
	// and what is remembered.
	Compact []func(context.Context) (store.Vacuumed, error)
}

// Files of leases.
const (
	deletionsLease = "deletions" // of who removes what is left of the deleted
	sweepLease     = "sweep"
)

// leaseGrace bounds the wait for another process that removes what is left of the deleted.
const leaseGrace = 10 * time.Second
