package view

import (
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// retryOf is the other attempt that is to come of a failed thread; nil: none is.
func retryOf(rec thread.Record) *thread.Retry {
	if !rec.AwaitsRetry() {
		return nil
	}
	if rec.Outcome == nil || rec.Outcome.Retry == nil {
		return &thread.Retry{At: rec.RetryAt}
	}
	due := *rec.Outcome.Retry
	return &due
}

// RetryNext says when a failed thread is tried again, and what its caller can do.
func RetryNext(due *thread.Retry) string {
	return fmt.Sprintf("it has failed and is tried again at %s (attempt %d of %d): wait_threads with this thread_id waits for that; cancel_thread keeps it from that",
		due.At.UTC().Format(time.RFC3339), due.Attempt, due.Attempts)
}

// Over reports whether the thread has ended and is not tried again.
func (s Started) Over() bool { return s.Status.Terminal() && s.Retry == nil }
