package store

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Mender brings rows back to what threads have signed, after something other than this
// program has changed them: a person, a copy, a backup. Each method is one guarded
// transaction. It names what was found; when that is different by then it changes
// nothing and says so, and a repeat changes nothing. It also keeps the files of the store
// from growing for ever.
type Mender interface {
	// Relate gives a thread other relatives than it had. One that has no row is left out.
	Relate(ctx context.Context, id thread.ID, was, now Relatives) (changed bool, err error)
	// Correct makes a row that has ended say what the thread has signed of its end: kind,
	// directive, state, outcome and cost of rec, which must be terminal. A row that is
	// created is ended by it, at UpdatedAt of rec, where it has the run of rec, whose life
	// the caller holds.
	Correct(ctx context.Context, rec thread.Record) (changed bool, err error)
	// MarkGone notes in the metadata of a thread that has ended, under [thread.MetadataRecordsGone],
	// that its records are gone and since when that is known. The zero time takes the
	// note away.
	MarkGone(ctx context.Context, id thread.ID, since time.Time) (changed bool, err error)

	// Budgets returns those of some threads.
	Budgets(ctx context.Context, ids []thread.ID) (map[thread.ID]Budget, error)
	// Release settles the active budget of a thread that has no row.
	Release(ctx context.Context, id thread.ID, at time.Time) (changed bool, err error)
	// Recount makes a settled budget say what its thread itself has spent, where it says
	// was, and brings the running totals of all budgets to what the rows below them say.
	Recount(ctx context.Context, id thread.ID, was, own thread.Micros) (changed bool, err error)
	// Miscounted returns the budgets whose running totals are not what the rows below
	// them say, or whose parent is below them. It reads every budget.
	Miscounted(ctx context.Context) ([]thread.ID, error)
	// AddUp brings the running totals of all budgets to what the rows below them say.
	AddUp(ctx context.Context) (changed bool, err error)

	// TrimLogs makes the write-ahead logs of the databases short, and returns by how many
	// bytes. Somebody who reads meanwhile can keep them as they are.
	TrimLogs(ctx context.Context) (freed int64, err error)
	// DropAside removes the damaged databases that were replaced, but for the newest so
	// many of each, and returns their names.
	DropAside(ctx context.Context, keep int) (dropped []string, err error)
}

// Relatives are the threads that a row names.
type Relatives struct {
	Parent         thread.ID
	ContinuationOf thread.ID
	ContinuedBy    thread.ID
	ChainRoot      thread.ID
}

// RelativesOf are those of a row.
func RelativesOf(rec thread.Record) Relatives {
	return Relatives{
		Parent: rec.ParentID, ContinuationOf: rec.ContinuationOf, ContinuedBy: rec.ContinuationThreadID, ChainRoot: rec.ChainRootID,
	}
}
