package store

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Costs sums up what threads have used.
type Costs interface {
	// Costs sums up the threads that were created in a range of time, in the order of
	// slots and then of keys. Each counts in the slot in which it was created, with what it
	// has used itself by now, under the model that its row names. Deleted threads count
	// too: at noon, UTC, of the day of its creation, see [CostSum.Gone]. Sets do not count,
	// their entries do. The cost of it grows with the threads of the range.
	Costs(ctx context.Context, q CostQuery) ([]CostSum, error)
}

// CostQuery says what is summed up.
type CostQuery struct {
	By           CostKey
	Since, Until time.Time     // Until excluded; zero: no bound
	Slot         time.Duration // in whole milliseconds since 1970, UTC; 0: one slot for all
}

// CostKey is what threads are told apart by.
type CostKey string

// The keys.
const (
	CostOfAll       CostKey = "" // they are not
	CostByDirective CostKey = "directive"
	CostByModel     CostKey = "model"
)

// CostSum is what some threads have used together.
type CostSum struct {
	Key  string    // empty where threads are not told apart, and for the model of those that have none
	Slot time.Time // its beginning; zero: there is one slot
	// Gone says that the threads were deleted, and Unknown that nobody knows what they were:
	// of those there is only a sum of spend.
	Gone, Unknown bool

	Threads, Errors, Cancelled int
	Cost                       thread.Cost
}
