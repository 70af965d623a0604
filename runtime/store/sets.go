package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Sets keeps what is to be done of fan-out sets. A set is a thread of [thread.KindSet]:
// it has a row, a budget and a parent as others have, and no process. It is running for
// as long as an entry of it waits or works; then whoever finds that settles it.
//
// The thread of an entry is a child of the set. It is linked to the entry in the
// transaction that registers it, see [NewThread.Entry], so that each entry is started
// once, whoever starts it.
type Sets interface {
	// OpenSet stores the entries of a set that the run has registered, and makes it
	// running. With a cancel on record it is thread.ErrSettled. A result that is to be used
	// again and was deleted by now counts as deleted since.
	OpenSet(ctx context.Context, id thread.ID, run thread.Run, s NewSet, at time.Time) (thread.Record, error)
	// Set returns how a set stands, or an error wrapping ErrNoSet.
	Set(ctx context.Context, id thread.ID) (Set, error)
	// LastSet returns the set of a scope that was opened last, of those with the same
	// content where that is not empty; or an error wrapping ErrNoSet.
	LastSet(ctx context.Context, scope, content string) (Set, error)
	// Working returns the running sets, oldest first.
	Working(ctx context.Context) ([]thread.ID, error)
	// Entries returns the entries of a set from a position, in order, at most so many,
	// without their inputs.
	Entries(ctx context.Context, id thread.ID, from, most int) ([]Entry, error)
	// NextEntry returns the first entry of a set that waits, with its inputs; waits is
	// false where there is none.
	NextEntry(ctx context.Context, id thread.ID) (e Entry, waits bool, err error)
	// RefuseEntry records why an entry that waits could not be started.
	RefuseEntry(ctx context.Context, id thread.ID, position int, why thread.Problem, at time.Time) error
	// Completed returns, by key, the threads of entries in a scope that have completed:
	// of those with one key the newest.
	Completed(ctx context.Context, scope string, keys []string) (map[string]thread.ID, error)
}

// NewSet is what OpenSet stores.
type NewSet struct {
	// Scope is within what results may be used again.
	Scope string
	// Content is the hash of the call: directive, model and items.
	Content     string
	Concurrency int // how many entries may work at the same time; at least 1
	Entries     []NewEntry
}

// NewEntry is an entry that is to be stored.
type NewEntry struct {
	Key    string // hash of what the result depends on
	Inputs json.RawMessage
	Done   thread.ID // its result is that of this thread, which has completed; empty: it waits
}

// Set is how a set stands.
type Set struct {
	ID          thread.ID
	Scope       string
	Content     string
	Concurrency int
	Items       int
	Waiting     int // entries that are to be started
	Reused      int // entries whose result was there before
	Working     int // threads of entries that have not ended
	Retrying    int // those that have failed and are to be tried again
}

// Entry is one entry of a set.
type Entry struct {
	Position  int // from 0
	Key       string
	Inputs    json.RawMessage // from NextEntry alone
	StartedAt time.Time       // zero: it waits, or was refused
	Reused    bool
	Refused   *thread.Problem // why it could not be started
	// Thread is the thread that was started for it, and Last the one that continues that
	// in the end. Both are empty where there is none, or it was deleted.
	Thread, Last thread.ID
	Status       thread.State // of Last
	Retries      bool         // Last has failed and is to be tried again
}

// Waits reports whether the entry is to be started.
func (e Entry) Waits() bool { return e.StartedAt.IsZero() && e.Refused == nil }

// Deleted reports whether the thread of the entry was deleted, and its result with it.
func (e Entry) Deleted() bool { return !e.StartedAt.IsZero() && e.Last == "" }

// Over reports whether nothing more comes of the entry.
func (e Entry) Over() bool {
	return e.Refused != nil || e.Deleted() || e.Status.Terminal() && !e.Retries
}

// Facts about sets.
var (
	// ErrNoSet: there is no such set, or its entries are lost.
	ErrNoSet = errors.New("no such set")
	// ErrEntryTaken: the entry was started by somebody else, or as many entries of its
	// set work as may.
	ErrEntryTaken = errors.New("entry of the set is not to be started now")
)
