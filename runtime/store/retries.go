package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Retries are the failed threads for which another attempt is to be made. When it is due
// is [thread.Record.RetryAt], which the end of the thread sets ([thread.Outcome.Retry])
// unless the thread was asked to stop. It is taken back by a cancel of the thread or of
// one above it, and by the link to the thread that continues it, whichever that is: of all
// who make the attempt one alone comes to it.
type Retries interface {
	// DueRetries returns the threads whose attempt is due, first due first, at most so many,
	// and when the next one of the others is; zero: there is none. A thread that has ended
	// more than [RetrySkew] after at counts as due: the clock was set back since, and nobody
	// knows how long the wait was.
	DueRetries(ctx context.Context, at time.Time, most int) (due []thread.Record, next time.Time, err error)
	// DropRetry records that no attempt is made, and why. It does nothing to a thread that
	// has none to come; dropped is false then. It is on disk when it returns.
	DropRetry(ctx context.Context, id thread.ID, why string, at time.Time) (dropped bool, err error)
}

// RetrySkew is by how much the clocks of machines may differ.
const RetrySkew = time.Minute

// AttemptedError says that another attempt for a thread is being made: the one that makes it
// is not linked yet, and never will be when its maker is dead and it is settled. It is an
// ErrNoRetry.
type AttemptedError struct{ Thread, By thread.ID }

func (e *AttemptedError) Error() string {
	return fmt.Sprintf("thread %s is about to be tried again as %s", e.Thread, e.By)
}

func (e *AttemptedError) Unwrap() error { return ErrNoRetry }

// ErrNoRetry says that no attempt is to be made for the thread.
var ErrNoRetry = errors.New("thread is not to be tried again")
