package store

import (
	"context"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Deletions takes threads away. [Deletions.Delete] records the intent and takes their
// rows, and everything that refers to those, out of all answers in one transaction.
// Their budgets follow, then what lies outside the store, and EndDeletions says so;
// whoever finds a deletion that has not ended goes on with it. Each step can be
// repeated.
//
// A deletion is remembered for as long as something may still name the thread (the newest
// 10 000): it is told from what there never was (*thread.DeletedError), and its id is
// not given out again. The thread's spend stays in every sum.
type Deletions interface {
	// Trees returns each of some threads with everything below it, by its id; see
	// [Registry.Descendants]. Outcomes are left out. One without a row is left out.
	Trees(ctx context.Context, tops []thread.ID) (map[thread.ID][]thread.Record, error)
	// Expired returns the threads that have ended and were last used no later than a
	// time, those first that were created first. Outcomes are left out.
	Expired(ctx context.Context, e Expiry) ([]thread.Record, error)
	// Delete takes sets of threads out of the registry, each set whole or not at all,
	// and returns why one was not, in the order of the sets: a *NotEndedError where a
	// thread of it has not ended, an *OutsideError where a thread that does not go
	// continues one of it or is below it. Threads without a row count as gone. It is on
	// disk when it returns.
	Delete(ctx context.Context, sets [][]thread.ID, at time.Time) (refused []error, err error)
	// Deletions lists what was deleted, in the order of that.
	Deletions(ctx context.Context, f DeletionFilter) ([]Deletion, error)
	// ForgetBudgets takes budgets out of the ledger. The nearest thread above that is
	// still there keeps what they have come to. One that is not settled is
	// settled first.
	ForgetBudgets(ctx context.Context, ids []thread.ID, at time.Time) error
	// EndDeletions records that nothing is left of threads.
	EndDeletions(ctx context.Context, ids []thread.ID) error
	// Gone is what has to be known of the deleted should the databases be lost.
	Gone(ctx context.Context) (Gone, error)
	// RestoreGone puts into the registry what it lacks of that. The ledger gets its
	// part with [Keeper.Restore].
	RestoreGone(ctx context.Context, g Gone) error
	// ShowPlan remembers, for an hour, what somebody was shown that a deletion would
	// do; ShownPlan returns it, or nil.
	ShowPlan(ctx context.Context, key string, p ShownPlan) error
	ShownPlan(ctx context.Context, key string, now time.Time) (*ShownPlan, error)
}

// Sweeps keeps when servers have swept.
type Sweeps interface {
	// BeginSweep begins a sweep, unless one has begun within the interval; then it is not
	// due. The time by which threads expire is never later than now, nor than most after
	// that of the sweep before; of the first sweep it is not later than the newest use of
	// a thread. So a clock that jumps lets nothing expire at once.
	BeginSweep(ctx context.Context, now time.Time, interval, most time.Duration) (by time.Time, due bool, err error)
}

// Shrinker gives room back.
type Shrinker interface {
	// Vacuum gives what the deleted have left back to the operating system, while others
	// read and write. They wait for moments only; work that would take longer is not done,
	// unless alone says that nobody else is there.
	Vacuum(ctx context.Context, alone bool) ([]Vacuumed, error)
}

// Vacuumed is what became of one part of a store. Sizes are in bytes.
type Vacuumed struct {
	Name   string `json:"name"`
	Before int64  `json:"before_bytes"`
	After  int64  `json:"after_bytes"`
	Kept   string `json:"kept,omitempty" jsonschema:"why it is not smaller"`
}

// Expiry selects threads that have ended.
type Expiry struct {
	States    []thread.State // empty: all that are terminal
	Directive string
	UsedUntil time.Time
	After     *thread.Record // of the page before, the last one
	Limit     int            // rows; at most MaxPage, and that when 0
}

// DeletionFilter selects deletions.
type DeletionFilter struct {
	After  int64       // their Seq is greater
	Open   bool        // of which something may be left
	IDs    []thread.ID // empty: of all threads
	Limit  int         // at most MaxPage, and that when 0
	Newest bool        // the newest first
}

// Deletion is a thread that was deleted.
type Deletion struct {
	Seq int64
	// Record is the row without its outcome. When all is done, only id, directive, kind,
	// parent and the time of creation are left of it.
	Record thread.Record
	At     time.Time
	Open   bool
}

// Gone is what a store knows of the threads that were deleted.
type Gone struct {
	// Threads were deleted; those folders that are still there are not theirs to come back
	// from.
	Threads []GoneThread `json:"threads,omitempty"`
	// Spent is what the deleted have spent below threads that are still there.
	Spent map[thread.ID]thread.Micros `json:"spent,omitempty"`
	// Days is what the deleted have spent, by the day, since 1970 in UTC, on which they
	// were created.
	Days map[int64]thread.Micros `json:"days,omitempty"`
}

// GoneThread is a deleted thread as it is remembered outside the store.
type GoneThread struct {
	ID        thread.ID   `json:"id"`
	Kind      thread.Kind `json:"kind"`
	Directive string      `json:"directive"`
	CreatedAt time.Time   `json:"created_at"`
	DeletedAt time.Time   `json:"deleted_at"`
	Open      bool        `json:"open,omitempty"` // something of it may be left
}

// ShownPlan is what a dry run has told.
type ShownPlan struct {
	Digest string // of the threads that would go
	At     time.Time
}

// PlanKept is for how long a plan counts as shown.
const PlanKept = time.Hour

// NotEndedError says that a thread cannot be deleted yet.
type NotEndedError struct {
	Thread thread.ID
	State  thread.State
}

func (e *NotEndedError) Error() string {
	return fmt.Sprintf("thread %s is %s; only one that has ended can be deleted", e.Thread, e.State)
}

// OutsideError says that threads cannot be deleted without another one, which has come
// since.
type OutsideError struct {
	Thread thread.ID
	Names  thread.ID // the thread that it continues, or is below
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("thread %s goes with thread %s and was not there when that was looked at", e.Thread, e.Names)
}
