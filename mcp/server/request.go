package server

import (
	"context"
	"sync"
	"time"
)

// request is one request of the client from the line it came in to its answer.
type request struct {
	conn *conn
	msg  message
	stop context.CancelCauseFunc // ends the handler's context

	mu     sync.Mutex
	closed bool        // answered or cancelled: nothing about it goes out any more
	held   *Progress   // reported, not yet sent
	last   *float64    // number of the last notification sent
	pause  *time.Timer // runs until the next notification may be sent
}

// requestKey is the context key of the request a handler serves.
type requestKey struct{}

// requestFrom returns the request a handler serves, or nil where the transport
// is not our own.
func requestFrom(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// close ends the request for the client and reports whether this call did so.
// With flush, a report that was held back goes out first.
func (r *request) close(flush bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.pause != nil {
		r.pause.Stop()
	}
	if flush {
		r.flushHeld()
	}
	r.closed = true
	return true
}

// cancel stops the handler; the request gets no answer any more.
func (r *request) cancel(cause error) {
	if r.close(false) {
		r.stop(cause)
	}
}
