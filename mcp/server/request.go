package server

import (
	"context"
	"sync"
	"time"
)

// request is one request of the client from the message it came in to its
// answer.
type request struct {
	conn *conn
	msg  message
	out  *outbox // for all messages about it
	own  bool    // out is for this request alone and ends with it
	stop context.CancelCauseFunc

	mu          sync.Mutex
	closed      bool               // answered or cancelled: nothing about it goes out any more
	held        *Progress          // reported, not yet sent
	last        *float64           // number of the last notification sent
	pause       *time.Timer        // runs until the next notification may be sent
	began       time.Time          // when the handler of a tool began
	said        *Progress          // reported last, sent or not
	silence     *time.Timer        // runs until the client is told that the call goes on; nil: it is not
	failure     *rpcError          // the answer, when that is an error
	outcome     string             // for the log: what a tool call came to
	elicitation pendingElicitation // what the person was asked and answered, see [Elicit]
	task        *Task              // what the call is answered with, see [AnswerWithTask]
}

// requestKey is the context key of the request a handler serves.
type requestKey struct{}

// requestFrom returns the request a handler serves, or nil outside of handlers.
func requestFrom(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// answer ends the request with a result or, where failure is set, an error,
// unless it was cancelled.
func (r *request) answer(result any, failure *rpcError) {
	if !r.close(true) {
		return
	}
	r.withdraw()
	if failure == nil {
		msg, err := encodeResult(r.msg.id, result)
		if err == nil {
			r.leave(msg)
			return
		}
		failure = internalError("the result of %s cannot be written as JSON", r.msg.method)
	}
	r.mu.Lock()
	r.failure = failure
	r.mu.Unlock()
	r.conn.server.logRefusal(r.msg.id, failure)
	r.leave(r.conn.server.encoded(encodeError(r.msg.id, failure)))
}

// cancel stops the handler; the request gets no answer any more.
func (r *request) cancel(cause error) {
	if r.close(false) {
		r.stop(cause)
		r.withdraw()
		r.leave(nil)
	}
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
	if r.silence != nil {
		r.silence.Stop()
	}
	if flush {
		r.flushHeld()
	}
	r.closed = true
	return true
}

// putTo queues a request to the client behind what was reported so far, unless
// this request has ended.
func (r *request) putTo(out *outbox, msg []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.flushHeld()
	out.put(msg)
	return true
}

// withdraw ends the questions to the client that the request still waits for.
func (r *request) withdraw() {
	r.conn.session.withdraw(func(q *question) bool { return q.request == r })
}

// leave sends the last message about the request, if there is one.
func (r *request) leave(msg []byte) {
	if r.own {
		r.out.end(msg)
		return
	}
	r.out.put(msg)
}

// refusal is the error the request was answered with, if it was.
func (r *request) refusal() *rpcError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// note queues a message that says no more when it is said twice, unless the request has
// ended.
func (r *request) note(msg []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.out.note(msg)
	}
}
