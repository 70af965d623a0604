package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Keeper looks after the stored data itself.
//
// A damaged database shows as a *CorruptError from opening the store or from
// any of its methods. It is then set aside, which the implementation does, the
// store is opened again, and what the new database lacks is restored from the
// threads' folders.
type Keeper interface {
	// Lost reports whether a database was made anew in a folder that had threads
	// already, so that their rows are missing. It stays so, for every process,
	// until Restore.
	Lost(ctx context.Context) (bool, error)
	// Restore adds rows that were rebuilt from the threads' folders, in any
	// order, and says that nothing is lost any more. Rows that exist are left as
	// they are, so it may be repeated and done by several processes. A row that
	// breaks a rule of the store is refused by itself and does not keep the others
	// out. A reference to a thread that there is no row of is dropped. A created
	// thread goes into the queue only if the one that it continues names it.
	Restore(ctx context.Context, threads []Restored) (Restoration, error)
	// Check reads everything stored and returns a *CorruptError where it is
	// damaged. It takes time in proportion to the size of the data.
	Check(ctx context.Context) error
	// Footprint tells how much room the store takes, and what was replaced in it.
	Footprint(context.Context) (Footprint, error)
}

// Footprint is what a store leaves on a disk.
type Footprint struct {
	Bytes    int64    // of what is in use
	LogBytes int64    // of that, in write-ahead logs
	SetAside []string // damaged databases, replaced and kept
}

// Restored is a thread as its folder tells it.
type Restored struct {
	// Record is the row. A thread in a terminal state has an Outcome and a
	// CompletedAt. A created one with QueuedAt goes into the queue by that time.
	Record thread.Record
	// Budget is nil for a thread that has none. Its ThreadID is the record's;
	// Reserved and Actual are not read but computed from all budgets.
	Budget *Budget
}

// Remembered is what only a registry knows of a thread.
type Remembered struct{ Name, RequestKey string }

// Restoration is what Restore did.
type Restoration struct {
	Threads int // rows of threads added
	Budgets int // rows of budgets added
	Refused []RefusedRow
}

// RefusedRow is a row that could not be restored.
type RefusedRow struct {
	ThreadID thread.ID
	Err      error
}

// ErrReplaced says that the database was set aside while this process had it
// open, and that the new one could not be opened in its place.
var ErrReplaced = errors.New("thread database was replaced")

// CorruptError says that a database file is damaged, or no database.
type CorruptError struct {
	Path string
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("thread database %s is damaged: %v", e.Path, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }
