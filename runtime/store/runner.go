package store

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Runner is what one run of a thread writes by: its own process, its starter before
// that, or whoever settles it when that is gone. Each write names the run. When the
// thread has another one by now nothing changes, and the error is ErrFenced. A row
// that has no run, as those of older versions, becomes that of the first write.
type Runner interface {
	// Of is the thread and the run.
	Of() (thread.ID, thread.Run)
	// Apply makes one legal change of the thread's state and returns the row after it. It
	// returns an error wrapping thread.ErrSettled when the row was not in a state
	// the change may leave, and thread.ErrNotFound when there is no row. A claim by a
	// thread that the one it continues does not name is ErrNotLinked as well.
	//
	// A thread that ends with a handoff is linked to its successor in the same
	// transaction, and the successor is admitted in its place: the slot passes on,
	// without a look at the queue. One that is not there any more, or is not
	// registered to continue this thread, is not linked; one that is not created or
	// has been asked to stop is linked and not admitted.
	Apply(ctx context.Context, c Change) (thread.Record, error)
	// Return puts the thread back, which was admitted, to its place in the queue; its process was
	// never started, because its starter is gone. The caller holds its
	// life lock. With a process or a cancel on record it is thread.ErrSettled.
	Return(ctx context.Context) (thread.Record, error)
	// SetProcess records the process that was started for the thread, which has not
	// ended.
	SetProcess(ctx context.Context, p thread.Process) error
	// Yield says whether the thread, which runs, only waits for others: it then occupies
	// no slot, so that those it waits for can have one. It has its slot back at
	// once when it goes on, even if all are occupied then; Admit waits until fewer
	// are.
	Yield(ctx context.Context, yielded bool) error
	// RecordCost stores the cost so far of the thread, which runs (absolute values, so
	// that a repeat changes nothing).
	RecordCost(ctx context.Context, c thread.Cost, contextTokens int64) error
	// Ask stores a question about the thread. Repeating it, with the same
	// id, changes nothing. One that is not running is thread.ErrSettled, one
	// that does not exist thread.ErrNotFound.
	Ask(ctx context.Context, q thread.Question) error
	// Raise makes the budget of the thread larger: to is what it may come to in all.
	// The increase comes out of the money that its parent has left, or the
	// error is an *InsufficientError and nothing changes; a root has no such bound.
	// Both rows must be active (ErrNoBudget). A budget that is as large already is
	// left as it is, so that a repeat changes nothing.
	Raise(ctx context.Context, to thread.Micros, at time.Time) error
	// HandOver gives what the thread has left to its successor and settles it,
	// in one transaction: to has the same parent, which holds as much as before, and
	// a budget of what the thread may still spend or reserve, without regard to a pledge;
	// 0 where it is overdrawn. The thread keeps what it has spent and what its children
	// hold, and its max_spend is no more than that. Its children that settle
	// later give back to the last of its chain, see Settle. It returns max_spend of to.
	// Nothing has to be free for it above. Repeating it changes nothing. ErrNoBudget
	// when the thread has no active row.
	HandOver(ctx context.Context, to thread.ID, at time.Time) (thread.Micros, error)
	// Pledge keeps what the thread's next call of a model can cost out of the reach
	// of its children, until Report says what it did cost. A later pledge replaces
	// an earlier one. More than is left is an *InsufficientError.
	Pledge(ctx context.Context, amount thread.Micros, at time.Time) error
	// Report records what the thread itself has spent in total so far (not a
	// difference), which is added to its actual. A lower total than recorded is
	// ignored; a higher one after the budget was settled is ErrNoBudget. The
	// total is not held to the budget: a caller bounds what a call may cost before
	// it makes the call, and what a provider billed beyond that is the truth. A
	// pledge ends with it, whatever the total.
	Report(ctx context.Context, ownTotal thread.Micros, at time.Time) error
	// Settle ends a thread's budget: adds its actual to the parent's exactly once
	// and frees its reservation. The money that its active children still hold stays
	// reserved, at the thread and at its parent; when such a child settles later,
	// its actual is added to, and its reservation freed at, the settled thread and
	// every ancestor that counts on it. So when all have ended, the actual of a
	// root is its whole tree's and nothing is reserved. Where one of the settled
	// threads above has handed over, and the last of its chain is active, the part of
	// the reservation that was not used becomes that one's: the money of a chain is
	// one budget. The nearest such thread counts. Repeating it changes
	// nothing; an id without a row is not an error, since a thread may die before
	// it had a budget.
	Settle(ctx context.Context, at time.Time) error
}
