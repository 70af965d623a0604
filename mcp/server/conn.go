package server

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// maxInFlight is how many requests one client may have in flight. Clients
	// send a handful at once; this keeps a broken one from taking all memory.
	maxInFlight = 1024
	// maxInFlightBytes is how long the messages of those requests may be together.
	maxInFlightBytes = 64 << 20
)

// conn is one client.
type conn struct {
	server  *Server
	out     *outbox
	session *session

	handlers sync.WaitGroup

	mu       sync.Mutex
	requests map[string]*request // not yet answered or cancelled, by the key of their id
	running  int                 // handlers that have not returned, of cancelled requests too
	bytes    int                 // length of the messages they work on
}

func newConn(s *Server, out *outbox) *conn {
	c := &conn{server: s, out: out, requests: make(map[string]*request)}
	c.session = newSession(fmt.Sprintf("stdio-%d", s.sessions.Add(1)), c)
	return c
}

// receive acts on one line of the client. It never waits for a handler, except
// for that of initialize, so that what follows sees its effect.
func (c *conn) receive(ctx context.Context, l line) {
	if l.tooLong {
		c.refuse(l.id(), invalidRequest("the message is longer than %d bytes, the most that is read", maxLine))
		return
	}
	msg, err := parseMessage(l.data)
	if err != nil {
		c.refuse(msg.id, err)
		return
	}
	switch msg.kind {
	case kindRequest:
		c.begin(ctx, msg)
	case kindNotification:
		c.notice(msg)
	case kindResponse:
		c.session.deliver(msg)
	case kindBlank:
	}
}

// begin admits a request and starts its handler.
func (c *conn) begin(ctx context.Context, msg message) {
	r := &request{conn: c, msg: msg}
	ctx, r.stop = context.WithCancelCause(context.WithValue(ctx, requestKey{}, r))
	if err := c.admit(r); err != nil {
		r.stop(nil)
		c.refuse(msg.id, err)
		return
	}
	if msg.method == mcp.MethodInitialize {
		c.run(ctx, r)
		return
	}
	go c.run(ctx, r)
}

// admit enters r among the requests in flight.
func (c *conn) admit(r *request) *rpcError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.requests[r.msg.id.key]; taken {
		return invalidRequest("id %s is in use by a request in flight: every request needs an id of its own", r.msg.id)
	}
	if c.running >= maxInFlight {
		return busy("%d requests are in flight, the most that are served at once: wait for answers and send this one again", maxInFlight)
	}
	if c.running > 0 && c.bytes+len(r.msg.raw) > maxInFlightBytes {
		return busy("the requests in flight are %d bytes long, and at most %d are served at once: wait for answers and send this one again", c.bytes, maxInFlightBytes)
	}
	c.requests[r.msg.id.key] = r
	c.running++
	c.bytes += len(r.msg.raw)
	c.handlers.Add(1)
	return nil
}

// run serves an admitted request and answers it, unless it was cancelled.
func (c *conn) run(ctx context.Context, r *request) {
	defer c.handlers.Done()
	defer r.stop(nil)
	result, err := c.handle(ctx, r)

	// Out of the books before the answer is out: the client may then use the
	// place and even the id again.
	c.release(r)
	c.session.flush()
	if !r.close(true) {
		return
	}
	if err == nil {
		answer, encodeErr := encodeResult(r.msg.id, result)
		if encodeErr == nil {
			c.out.put(answer)
			return
		}
		err = internalError("the result of %s cannot be written as JSON", r.msg.method)
	}
	c.refuse(r.msg.id, err)
}

// handle asks the protocol server. A panic outside a tool, whose own become
// results, ends only this request.
func (c *conn) handle(ctx context.Context, r *request) (result any, err *rpcError) {
	defer func() {
		if v := recover(); v != nil {
			c.server.log.Error().Any("panic", v).Bytes("stack", debug.Stack()).Str("method", string(r.msg.method)).Msg("request panicked")
			result, err = nil, internalError("%s failed inside rye-mcp; its log has the details", r.msg.method)
		}
	}()
	return c.server.handle(ctx, r.msg)
}

// release takes a request whose handler has returned out of the books.
func (c *conn) release(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.bytes -= len(r.msg.raw)
	if c.requests[r.msg.id.key] == r { // a cancelled request's id may be in use again
		delete(c.requests, r.msg.id.key)
	}
}

// notice acts on a notification: a cancellation. The others a client sends ask
// nothing of this server, and unknown ones are to be ignored.
func (c *conn) notice(msg message) {
	if msg.method != mcp.MethodNotificationCancelled {
		return
	}
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
		Reason    string          `json:"reason"`
	}
	if !isNull(msg.params) && json.Unmarshal(msg.params, &params) != nil {
		return
	}
	id, err := parseID(params.RequestID)
	if err != nil {
		return
	}
	c.mu.Lock()
	r := c.requests[id.key]
	delete(c.requests, id.key)
	c.mu.Unlock()
	if r == nil {
		return // answered already, or never sent: clients do both
	}
	cause := ErrRequestCancelled
	if params.Reason != "" {
		cause = fmt.Errorf("%w: %s", ErrRequestCancelled, params.Reason)
	}
	r.cancel(cause)
}

// refuse answers with an error.
func (c *conn) refuse(id requestID, e *rpcError) {
	c.server.log.Debug().Stringer("id", id).Int("code", e.Code).Str("reason", e.Message).Msg("request refused")
	c.send(encodeError(id, e))
}

// send queues what an encoder made.
func (c *conn) send(msg []byte, err error) {
	if err != nil {
		c.server.log.Error().Err(err).Msg("message to the client cannot be written as JSON")
		return
	}
	c.out.put(msg)
}
