package store

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Glancer reads how many threads stand, again and again, and nothing that is long of them.
type Glancer interface {
	// Glance returns the rows that a look at all threads is made of, as they are at one
	// moment: those that have not ended, those that have ended and were used last, and all
	// that either continue, are continued by or are below. Outcomes and metadata are left
	// out.
	Glance(ctx context.Context, most EndedMost) (Glance, error)
	// Budgets returns the budgets that are not settled, and those of some threads; see
	// [Ledger.Active].
	Budgets(ctx context.Context, ids []thread.ID) ([]Budget, error)
	// SetCounts counts the entries of a set, or returns an error wrapping ErrNoSet.
	SetCounts(ctx context.Context, id thread.ID) (SetCounts, error)
}

// EndedMost is how many threads that have ended a glance has at most, those used last: of
// all but the entries of sets, and besides of those that are below nobody. One that another
// continues does not count. A bounded number of threads is looked through for them.
type EndedMost struct{ Any, Roots int }

// Glance is what [Glancer.Glance] returns.
type Glance struct {
	Rows    []thread.Record // the newest first
	Threads int             // all that there are
	Deleted int64           // Seq of the newest deletion
}

// SetCounts is how the entries of a set stand.
type SetCounts struct {
	Items, Waiting, Reused, Refused, Deleted int
	// Retrying are those that have failed and are to be tried again.
	Retrying int
	// States counts the last threads of the other entries.
	States map[thread.State]int
	// Below is how many threads there are below the set, at any depth.
	Below int
}
