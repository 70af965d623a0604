package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// grace is how long the end of a connection waits for handlers to return, and
// for the client to read their answers.
const grace = 2 * time.Second

// conn is one client.
type conn struct {
	server  *Server
	out     *outbox // for what is about no request that has an outbox of its own
	session *session
	load    *load
	workers *workerPool // of the transport, which ends it

	watches watches

	handlers sync.WaitGroup

	mu       sync.Mutex
	gone     bool                // no request is admitted any more
	requests map[string]*request // not yet answered or cancelled, by the key of their id
}

// newConn opens a connection. The transport is the first part of the name that
// logs and handlers know the client by.
func newConn(s *Server, transport string, out *outbox, load *load, workers *workerPool) *conn {
	c := &conn{server: s, out: out, load: load, workers: workers, requests: make(map[string]*request)}
	c.session = newSession(fmt.Sprintf("%s-%d", transport, s.sessions.Add(1)), c)
	go c.session.forward()
	return c
}

// register makes the client known to mcp-go, whose broadcasts then reach it.
func (c *conn) register(ctx context.Context) error {
	if err := c.server.mcp.RegisterSession(ctx, c.session); err != nil {
		return fmt.Errorf("register session: %w", err)
	}
	c.server.serving.Store(c.session.id, true)
	return nil
}

// end tells the calls in flight why they end and waits until they have
// answered, at most until ctx ends. Nothing comes out of the connection after.
func (c *conn) end(ctx context.Context, cause error) {
	c.server.serving.Delete(c.session.id)
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	for _, r := range c.inFlight() {
		r.stop(cause)
	}
	select {
	case <-c.idle():
	case <-ctx.Done():
		c.server.log.Warn().Str("session", c.session.id).Msg("handlers still run after the client has gone")
	}
	for _, r := range c.inFlight() {
		r.cancel(cause)
	}
	c.watches.end()
	close(c.session.stop)
	<-c.session.ended
	c.out.close()
	c.server.mcp.UnregisterSession(context.WithoutCancel(ctx), c.session.id)
}

// inFlight returns the requests that have no answer yet.
func (c *conn) inFlight() []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.requests))
}

// idle returns a channel that closes when no handler runs.
func (c *conn) idle() <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		c.handlers.Wait()
		close(idle)
	}()
	return idle
}

// receive acts on one message of the client, and returns the request if it is
// one. It never waits for a handler, except for that of initialize, so that
// the messages after it see its effect. The answer goes to out; with own, out is for
// this request alone and ends with it.
func (c *conn) receive(ctx context.Context, msg message, out *outbox, own bool) *request {
	switch msg.kind {
	case kindRequest:
		return c.begin(ctx, &request{conn: c, msg: msg, out: out, own: own})
	case kindNotification:
		c.notice(msg)
	case kindResponse:
		c.session.deliver(msg)
	case kindBlank:
	}
	return nil
}

// begin admits a request and starts its handler.
func (c *conn) begin(ctx context.Context, r *request) *request {
	ctx = c.server.trace(c.server.mcp.WithContext(ctx, c.session), r.msg.traceparent)
	ctx, r.stop = context.WithCancelCause(context.WithValue(ctx, requestKey{}, r))
	if err := c.admit(r); err != nil {
		r.stop(nil)
		r.answer(nil, err)
		return r
	}
	if r.msg.method == mcp.MethodInitialize {
		c.run(ctx, r)
		return r
	}
	c.workers.run(func() { c.run(ctx, r) })
	return r
}

// admit enters r among the requests in flight.
func (c *conn) admit(r *request) *rpcError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return busy("the session has ended")
	}
	if _, taken := c.requests[r.msg.id.key]; taken {
		return invalidRequest("id %s is in use by a request in flight: every request needs an id of its own", item.Clip(r.msg.id.String(), 100))
	}
	if err := c.load.add(len(r.msg.raw)); err != nil {
		return err
	}
	c.requests[r.msg.id.key] = r
	c.handlers.Add(1)
	return nil
}

// run serves an admitted request and answers it, unless it was cancelled.
func (c *conn) run(ctx context.Context, r *request) {
	defer c.handlers.Done()
	defer r.stop(nil)
	began := time.Now()
	result, err := c.handle(ctx, r)
	c.server.logRequest(ctx, r, err, time.Since(began))

	// Out of the books before the answer is out: the client may then use the
	// place and even the id again.
	c.load.remove(len(r.msg.raw))
	c.forget(r)
	c.session.flush()
	r.answer(result, err)
}

// handle asks the protocol server. A panic outside a tool, whose own become
// results, ends only this request.
func (c *conn) handle(ctx context.Context, r *request) (result any, err *rpcError) {
	defer func() {
		if v := recover(); v != nil {
			c.server.logOf(ctx).Error().Any("panic", v).Bytes("stack", debug.Stack()).Str("method", string(r.msg.method)).Msg("request panicked")
			result, err = nil, internalError("%s failed inside rye-mcp; its log has the details", r.msg.method)
		}
	}()
	return c.server.handle(ctx, r.msg)
}

// forget frees the id of a request that needs no answer any more, or will get
// it now.
func (c *conn) forget(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests[r.msg.id.key] == r { // a cancelled request's id may be in use again
		delete(c.requests, r.msg.id.key)
	}
}

// drop cancels a request.
func (c *conn) drop(r *request, cause error) {
	c.forget(r)
	r.cancel(cause)
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
	c.mu.Unlock()
	if r == nil {
		return // answered already, or never sent: clients do both
	}
	cause := ErrRequestCancelled
	if params.Reason != "" {
		cause = fmt.Errorf("%w: %s", ErrRequestCancelled, params.Reason)
	}
	c.drop(r, cause)
}

// refuse answers what is not a request with an error. For out and own see
// receive.
func (c *conn) refuse(out *outbox, own bool, id requestID, e *rpcError) {
	c.server.logRefusal(id, e)
	answer := c.server.encoded(encodeError(id, e))
	if own {
		out.end(answer)
		return
	}
	out.put(answer)
}
