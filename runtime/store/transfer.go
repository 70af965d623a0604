package store

import (
	"context"
	"errors"
	"fmt"
)

// Transfer is a store whose rows can be moved to another, as they are.
type Transfer interface {
	// Content reads everything, and says what it comes to.
	Content(ctx context.Context) (Content, error)
	// Fill puts everything that another store has into this one: the ledger in one
	// transaction, then the registry in one, so that nobody finds a thread without its
	// budget. A database that has rows must have the same as that of the other, and is left
	// as it is: what was cut short is called again. The error of another is ErrOccupied, and
	// that of two that have other columns ErrOtherVersion. The caller sees to it that nothing
	// changes meanwhile, and compares what both have afterwards.
	Fill(ctx context.Context, from Transfer) error
	// Alone calls f while nobody registers a thread or changes how one stands, with what the
	// store has. f may do to the store what keeps the transaction from ending well, such as
	// taking it away: the error of f alone counts.
	Alone(ctx context.Context, f func(context.Context, Content) error) error
}

// Errors of [Transfer].
var (
	ErrOccupied     = errors.New("it has threads of its own")
	ErrOtherVersion = errors.New("the two stores are of different versions")
)

// MovingError says that the threads of a project are on their way to this store, and not all
// of them are there. It wraps ErrAway.
type MovingError struct {
	From string // where they come from
}

func (e *MovingError) Error() string {
	return fmt.Sprintf("the threads of this project are being moved here from %s, and that has not ended", e.From)
}

func (e *MovingError) Unwrap() error { return ErrAway }

// Try says what ends that.
func (e *MovingError) Try() string {
	return "wait for the rye-mcp store migrate that is at work; call it again there where it was cut short"
}

// MovedError says that the threads of a project were moved from this store. It wraps ErrAway.
type MovedError struct {
	To   string // where they are
	Kept string // what was put aside here
}

func (e *MovedError) Error() string {
	return "the threads of this project were moved to " + e.To
}

func (e *MovedError) Unwrap() error { return ErrAway }

// Try says how to find them, and how to begin anew.
func (e *MovedError) Try() string {
	return "use them where they are; or move them back, there: rye-mcp store migrate; or begin anew here, when schema " + e.Kept + " is dropped"
}

// Content is what a store has, told by numbers: two stores with the same content have the
// same rows.
type Content struct {
	Threads int64             `json:"threads"`
	Unended int64             `json:"unended"` // threads that are not in a terminal state
	Spend   int64             `json:"spend"`   // of all threads, in micro-dollars
	Budgets int64             `json:"budgets"`
	Settled int64             `json:"settled"` // spend of all budgets, in micro-dollars
	Rows    int64             `json:"rows"`    // of all tables
	Hashes  map[string]string `json:"hashes"`  // of each table, whatever the order of its rows
}

// Same reports whether two stores have the same rows.
func (c Content) Same(other Content) bool {
	if len(c.Hashes) != len(other.Hashes) {
		return false
	}
	for table, hash := range c.Hashes {
		if other.Hashes[table] != hash {
			return false
		}
	}
	return true
}
