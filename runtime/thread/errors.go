package thread

import (
	"errors"
	"fmt"
	"time"
)

// Causes of a stop, read with context.Cause.
var (
	// ErrCancelled means that somebody asked for the thread to stop.
	ErrCancelled = errors.New("cancelled")
	// ErrShutdown means that the process was asked to end without a cancel on record.
	ErrShutdown = errors.New("process asked to shut down")
	// ErrInterrupted means that a call is broken off for a message to the thread, which
	// goes on.
	ErrInterrupted = errors.New("interrupted by a message to the thread")
)

// Facts about threads.
var (
	// ErrNotFound means that no thread has that id.
	ErrNotFound = errors.New("no such thread")
	// ErrSettled means that the guarded change found the thread in another state, because
	// somebody else settled it first.
	ErrSettled = errors.New("thread is already settled")
	// ErrDied means that the thread's process is gone and the thread had not finished.
	ErrDied = errors.New("thread process died")
	// ErrRunnerExists means that another process has the life of the thread, or nobody hands it over.
	ErrRunnerExists = errors.New("thread already has a runner")
	// ErrUnfit means that no records can be kept of a thread with that id.
	ErrUnfit = errors.New("cannot be a thread's folder")
	// ErrNoMeta means that nothing describes the thread.
	ErrNoMeta = errors.New("thread has no thread.json")
)

// CodeDied is the [Problem.Code] of a thread that was settled because of [ErrDied].
const CodeDied = "process_died"

// CodeStoreAway is the [Problem.Code] of a thread that could not go on because the server
// that keeps the threads could not be used.
const CodeStoreAway = "store_away"

// LimitError says which limit ended a thread.
type LimitError struct {
	Code  string // turns_exceeded, tokens_exceeded, spend_exceeded, duration_exceeded
	Value string // what was reached, in the limit's unit
	Max   string // what was allowed
	// Chain says the same of the chain; nil: the thread began with limits of its own.
	Chain *ChainUse
}

// ChainUse is what of a limit the threads of a chain have used, in the limit's unit.
type ChainUse struct {
	Value  string `json:"value"`  // all of them
	Max    string `json:"max"`    // what the chain was allowed
	Before string `json:"before"` // those before the one that reached it
}

// Error has the form the specification fixes.
func (e *LimitError) Error() string {
	if c := e.Chain; c != nil {
		return fmt.Sprintf("Limit exceeded: %s (%s/%s); the threads that this one continues have used %s of it", e.Code, c.Value, c.Max, c.Before)
	}
	return fmt.Sprintf("Limit exceeded: %s (%s/%s)", e.Code, e.Value, e.Max)
}

// DeletedError says that there was a thread of that id and that it was deleted. It is
// a kind of [ErrNotFound].
type DeletedError struct {
	ID ID
	At time.Time
}

func (e *DeletedError) Error() string {
	return fmt.Sprintf("thread %s was deleted on %s", e.ID, e.At.UTC().Format("2006-01-02 15:04 MST"))
}

// Is makes it a kind of [ErrNotFound].
func (e *DeletedError) Is(target error) bool { return target == ErrNotFound }

// WasDeleted reports whether an error says that this very thread was deleted, which it
// may be between a look at its row and the next.
func WasDeleted(err error, id ID) bool {
	deleted, is := errors.AsType[*DeletedError](err)
	return is && deleted.ID == id
}

// SignalError is the cause of a stop by a signal. It is a cancel, whether or
// not one is on record.
type SignalError struct{ Signal string }

func (e *SignalError) Error() string { return "stopped by " + e.Signal }

// Is makes it a kind of [ErrCancelled].
func (e *SignalError) Is(target error) bool { return target == ErrCancelled }
