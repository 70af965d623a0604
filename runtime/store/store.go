// Package store holds what is shared between processes about threads: the
// registry (one row a thread) and the budget ledger (one row a thread). It is
// the only package whose implementations contain SQL about threads.
//
// A stored row is the truth; whatever a process remembers about a thread is a
// cache of it. Every change is one guarded statement: it names the state it
// leaves, and when somebody else was first it changes nothing and says so
// ([thread.ErrSettled]).
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Registry keeps the rows of threads.
type Registry interface {
	// Candidate returns the id that a thread would have now: n.ID when that is set, else
	// the first of n.Directive and n.Now behind n.Ordinal that no row has. It refuses a
	// thread that would be refused, so that nothing is claimed for it; Register decides.
	// See [Register].
	Candidate(ctx context.Context, n NewThread) (Candidate, error)
	// Register inserts a thread in state created under n.ID, or returns ErrTaken. By
	// then the caller has what belongs to the id outside the store, its life above all.
	// In the same transaction it counts the spawn against the parent, which must be
	// running and not asked to stop (ErrParentGone) and below its limit (*SpawnsError).
	// With n.ParentEnded the parent must have ended instead, and nobody above it may have
	// been asked to stop either. With a RequestKey that already names a thread, that
	// thread is returned with created=false and nothing changes.
	//
	// With n.ContinuationOf the thread is to continue another, which must have ended
	// (*PredecessorError) and be continued by nobody (*LinkedError). With n.Handoff
	// as well that one must be running instead and not asked to stop; the new one has
	// its parent, by no rule of a start, and no spawn is counted. Several may be
	// registered to continue one thread; only the one that Link, or the outcome of a
	// handoff, has made it name can be enqueued and claimed.
	Register(ctx context.Context, n NewThread) (rec thread.Record, created bool, err error)
	// Runner is what a run of a thread writes by.
	Runner(id thread.ID, run thread.Run) Runner
	// Replace gives a thread that has not ended another run, so that the one before can
	// write nothing any more, neither here nor in the ledger, and returns the row after
	// it. When the thread has another run than from by now it is ErrFenced.
	Replace(ctx context.Context, id thread.ID, from, to thread.Run) (thread.Record, error)
	// Get returns the row of a thread, or an error wrapping thread.ErrNotFound.
	Get(ctx context.Context, id thread.ID) (thread.Record, error)
	// ByRequestKey returns the thread a key names, or thread.ErrNotFound.
	ByRequestKey(ctx context.Context, key string) (thread.Record, error)
	// List returns a page of rows, newest first unless the filter sorts them otherwise,
	// and the cursor of the next page (empty at the end). Rows that do not change while
	// pages are read come exactly once; one whose place in the order changes meanwhile
	// comes where it is when its page is read.
	List(ctx context.Context, f Filter) (rows []thread.Record, next string, err error)
	// Descendants returns every thread below id, children before grandchildren. A
	// thread that continues id or one below it counts as below, whatever its parent.
	Descendants(ctx context.Context, id thread.ID) ([]thread.Record, error)
	// Link makes a thread that has ended name the one that continues it, which must
	// be created, not asked to stop (thread.ErrSettled) and registered to do so
	// (ErrNotLinked). The first one counts: for another it is a *LinkedError.
	// Repeating it changes nothing. A thread that has not ended is a
	// *PredecessorError, one that does not exist thread.ErrNotFound.
	Link(ctx context.Context, id, successor thread.ID, at time.Time) error
	// RequestCancel marks the thread and every descendant (see Descendants) that is
	// not terminal, in one transaction, and returns those rows. The first request's
	// time stays, and who made it, see [thread.Record.CancelledBy]; empty: nobody knows.
	RequestCancel(ctx context.Context, id thread.ID, by string, at time.Time) ([]thread.Record, error)
	// Known returns which of some ids have a row, or are being deleted.
	Known(ctx context.Context, ids []thread.ID) (map[thread.ID]bool, error)
	// Stats sums up all rows, at a cost that does not grow with their number.
	Stats(ctx context.Context, since StatsSince) (Stats, error)
}

// NewThread is what Register stores.
type NewThread struct {
	ID        thread.ID // of a candidate; that of a tool run (UUID) is set by the starter
	Ordinal   int       // of a candidate of a directive; 0: ID is no such
	Run       thread.Run
	Kind      thread.Kind
	Directive string
	Name      string
	ParentID  thread.ID
	MaxSpawns int // the parent's limit, when ParentID is set
	// ParentEnded says that the parent has ended and its last hooks start the thread.
	ParentEnded bool
	// ContinuationOf is the thread that this one is to continue.
	ContinuationOf thread.ID
	// Handoff says that ContinuationOf still runs and is about to end as continued.
	// ParentID, MaxSpawns and ParentEnded are not read then.
	Handoff bool
	// Retry says that this is the other attempt that ContinuationOf is due for, else it is
	// refused with ErrNoRetry; an *AttemptedError says that another one is being made. It is no further child of its parent: MaxSpawns and
	// ParentEnded are not read, and its origin is that of ContinuationOf.
	Retry      bool
	Model      string
	RequestKey string
	// RequestHash is that of the call with that key; empty: the item alone counts.
	RequestHash string
	// Metadata is a JSON object, or empty. One that continues another has that one's
	// name and metadata, see [thread.InheritedMetadata], and Name and Metadata are not
	// read then.
	Metadata json.RawMessage
	// Origin is the client that the thread is started for; one that continues another by
	// a handoff has that one's.
	Origin thread.Origin
	// Spawns is how many children a set counts as with its parent; 0 is 1.
	Spawns int
	// Entry is the place, from 1, of the thread among the entries of the set that
	// ParentID names; 0: it is none of them. EntryKey is the key that the entry has now.
	// One that is not to be started now is ErrEntryTaken.
	Entry    int
	EntryKey string
	Now      time.Time
}

// SameCall refuses a request key that names another call than n with an error
// wrapping [ErrKeyReused].
func SameCall(rec thread.Record, n NewThread) error {
	switch {
	case rec.Directive != n.Directive || rec.Kind != n.Kind:
		return fmt.Errorf("%w: thread %s of the %s %s", ErrKeyReused, rec.ThreadID, rec.Kind, rec.Directive)
	case rec.RequestHash != "" && n.RequestHash != "" && rec.RequestHash != n.RequestHash:
		return fmt.Errorf("%w: thread %s of %s was started with other inputs, limits or model", ErrKeyReused, rec.ThreadID, rec.Directive)
	}
	return nil
}

// EachRow visits the threads in some states (none: all), newest first, until visit
// returns an error.
func EachRow(ctx context.Context, r Registry, states []thread.State, visit func(thread.Record) error) error {
	filter := Filter{States: states, Limit: MaxPage}
	for {
		rows, next, err := r.List(ctx, filter)
		if err != nil {
			return err
		}
		for _, rec := range rows {
			if err := visit(rec); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		filter.Cursor = next
	}
}

// Change is one legal change of a thread's state. It can only be made by the
// constructors below.
type Change struct {
	id      thread.ID
	to      thread.State
	outcome *thread.Outcome
	cost    *thread.Cost
	process thread.Process
	at      time.Time
}

// Claimed moves created → running, for the process that will run the thread.
// It is refused when a cancel is on record.
func Claimed(id thread.ID, p thread.Process, at time.Time) Change {
	return Change{id: id, to: thread.Running, process: p, at: at}
}

// Finished moves a thread to the state of its outcome, which must be terminal.
// One that is continued names its successor in Handoff, and no other does. Cost
// may be nil to keep what is recorded.
func Finished(id thread.ID, o thread.Outcome, cost *thread.Cost, at time.Time) (Change, error) {
	if !o.State.Terminal() {
		return Change{}, fmt.Errorf("outcome of %s has state %q, which is not terminal", id, o.State)
	}
	if err := checkHandoff(id, o); err != nil {
		return Change{}, err
	}
	return Change{id: id, to: o.State, outcome: &o, cost: cost, at: at}, nil
}

// ID is the thread that changes.
func (c Change) ID() thread.ID { return c.id }

// To is the state it comes to.
func (c Change) To() thread.State { return c.to }

// Outcome is how the thread ended; nil for a claim.
func (c Change) Outcome() *thread.Outcome { return c.outcome }

// Cost is the final cost, or nil to keep what is recorded.
func (c Change) Cost() *thread.Cost { return c.cost }

// Process is the one that claims.
func (c Change) Process() thread.Process { return c.process }

// At is when the change was made.
func (c Change) At() time.Time { return c.at }

// Ledger keeps the money. See the spec of budget: max, actual, reserved.
// All amounts are micro-dollars; every method is one immediate transaction.
type Ledger interface {
	// OpenRoot gives a root thread its budget. Repeating it changes nothing.
	OpenRoot(ctx context.Context, id thread.ID, maxSpend thread.Micros, at time.Time) error
	// Reserve takes amount for child out of what parent has left, or returns an
	// *InsufficientError. The parent must have an active row (ErrNoBudget).
	// Repeating it changes nothing.
	Reserve(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error
	// ReserveAfter is Reserve below a parent that has ended, for what its last hooks
	// start. The amount comes out of what the parent had left and is held by every
	// ancestor that counts it, past settled ones up to the first that is active, as
	// if it had been reserved before the parent ended; each must have that much left.
	ReserveAfter(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error
	// Budget returns a row, or an error wrapping ErrNoBudget.
	Budget(ctx context.Context, id thread.ID) (Budget, error)
	// Active returns the budgets that are not settled, in no particular order.
	Active(ctx context.Context) ([]Budget, error)
	// Exposure returns what the root above a thread, and the chain that it is of, may
	// come to in all, or ErrNoBudget.
	Exposure(ctx context.Context, id thread.ID) (Exposure, error)
	// Tree returns what Budget does, and sums the budgets of the thread and all
	// below it, both as they are at one moment.
	Tree(ctx context.Context, id thread.ID) (Budget, TreeSpend, error)
}

// Budget is a ledger row.
type Budget struct {
	ThreadID  thread.ID
	ParentID  thread.ID
	Successor thread.ID // the budget was handed over to
	MaxSpend  thread.Micros
	Reserved  thread.Micros // held by active children, and by those below settled ones
	Actual    thread.Micros // own spend and what finished children cascaded
	Own       thread.Micros
	Gone      thread.Micros // part of Actual: by threads below that were deleted
	Pledged   thread.Micros // to a call of the model that is on its way
	Active    bool
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Remaining is what the thread may still spend or reserve.
func (b Budget) Remaining() thread.Micros { return b.MaxSpend - b.Actual - b.Reserved - b.Pledged }

// Exposure is what a root and those that continue it may come to, children included.
type Exposure struct {
	Root thread.ID     // the first of the chain
	Most thread.Micros // what active budgets may come to, and settled ones have come to or still hold
	Open bool          // something of it can still be spent
}

// TreeSpend sums a tree of budgets.
type TreeSpend struct {
	Actual   thread.Micros // spent in the whole tree
	Reserved thread.Micros // held below the thread; what a child hands on comes out of its own
	Threads  int
	Active   int
}

// Facts about the store.
var (
	// ErrTaken: the candidate id is in use.
	ErrTaken = errors.New("thread id is taken")
	// ErrKeyReused: a request key names another call.
	ErrKeyReused = errors.New("request_key names another call")
	// ErrNoBudget: the ledger has no active row for the thread.
	ErrNoBudget = errors.New("thread has no active budget")
	// ErrFenced: the run that writes is not that of the thread any more.
	ErrFenced = fmt.Errorf("another run has the thread: %w", thread.ErrSettled)
	// ErrParentGone: the parent is not running, so it cannot spawn.
	ErrParentGone = errors.New("parent thread is not running")
	// ErrAway: the server that keeps the threads cannot be used now. It says nothing of what
	// was to be done there.
	ErrAway = errors.New("the thread store cannot be used now")
	// ErrTooNew: the database was written by a newer version of rye-mcp.
	ErrTooNew = errors.New("thread database was written by a newer rye-mcp")
	// ErrBadCursor: a cursor that List did not give out.
	ErrBadCursor = errors.New("not a cursor of this list")
)

// InsufficientError says by how much a reservation does not fit.
type InsufficientError struct {
	Parent    thread.ID
	Requested thread.Micros
	Remaining thread.Micros
}

func (e *InsufficientError) Error() string {
	return fmt.Sprintf("thread %s has %s left, %s was asked for", e.Parent, e.Remaining, e.Requested)
}

// SpawnsError says that a parent may start no more children.
type SpawnsError struct {
	Parent thread.ID
	Max    int
	Asked  int // children that a set counts as; 0: one was asked for
}

func (e *SpawnsError) Error() string {
	if e.Asked > 1 {
		return fmt.Sprintf("thread %s may start %d children in all, and cannot start %d more", e.Parent, e.Max, e.Asked)
	}
	return fmt.Sprintf("thread %s may start %d children and has started them", e.Parent, e.Max)
}

// Store is all of it; one value serves one project's state folder.
type Store interface {
	Registry
	Labels
	Queue
	Questions
	Handoffs
	Retries
	News
	Notices
	Messages
	Sets
	Latest
	Glancer
	Census
	Costs
	Deletions
	Shrinker
	Sweeps
	Ledger
	Afterwards
	Keeper
	Watcher
	// Mend is what brings rows back to what was signed.
	Mend() Mender
	Close() error
}
