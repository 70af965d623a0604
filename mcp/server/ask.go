package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

var (
	// errNoReader means that the client reads nothing that a request to it could
	// go to: it takes only JSON in answer to a POST, and has no stream open.
	errNoReader = errors.New("the client has no stream open that takes requests")
	// errAnswered means that a call went on asking after its own end.
	errAnswered = errors.New("the call that asks has ended")
)

// clientError is the error that a client answered a request with.
type clientError struct {
	method mcp.MCPMethod
	code   int
	text   string
}

func (e *clientError) Error() string {
	return fmt.Sprintf("%s: client answered: %s (%d)", e.method, item.Clip(e.text, 500), e.code)
}

// question is a request to the client that has no response yet.
type question struct {
	id       string
	request  *request // the call that asks; nil for none
	out      *outbox  // what the question went to
	response chan message
}

// ask sends a request to the client and waits for its response. It goes with
// the messages about the call that ctx belongs to, and does not outlive it.
func (s *session) ask(ctx context.Context, method mcp.MCPMethod, params any) (json.RawMessage, error) {
	q, err := s.pose(ctx, method, params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case msg, ok := <-q.response:
		switch {
		case !ok && ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %w", method, context.Cause(ctx))
		case !ok:
			return nil, fmt.Errorf("%s: %w", method, errAnswered)
		case msg.err != nil:
			return nil, &clientError{method: method, code: msg.err.Code, text: msg.err.Message}
		}
		return msg.result, nil
	case <-ctx.Done():
		s.withdraw(func(other *question) bool { return other == q })
		return nil, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// pose sends a request to the client.
func (s *session) pose(ctx context.Context, method mcp.MCPMethod, params any) (*question, error) {
	out := s.reach(ctx)
	if out == nil {
		return nil, errNoReader
	}
	q := &question{request: requestFrom(ctx), out: out, response: make(chan message, 1)}
	s.mu.Lock()
	s.sent++
	q.id = "rye-" + strconv.Itoa(s.sent) // a string, as clients number their own requests
	s.waiting[q.key()] = q
	s.mu.Unlock()

	msg := s.conn.server.encoded(encodeMessage(q.id, method, params))
	if q.request == nil {
		out.put(msg)
	} else if !q.request.putTo(out, msg) {
		s.mu.Lock()
		delete(s.waiting, q.key())
		s.mu.Unlock()
		return nil, errAnswered
	}
	return q, nil
}

// key is what the response is found by, see [requestID].
func (q *question) key() string { return `"` + q.id }

// reach is the outbox whose reader gets a request to the client: that of the
// call ctx belongs to, else a stream that is open for such; nil without either.
func (s *session) reach(ctx context.Context) *outbox {
	if r := requestFrom(ctx); r != nil && !r.out.single {
		return r.out
	}
	if s.conn.out.read() {
		return s.conn.out
	}
	return nil
}

// deliver hands a response to whoever waits for it. A response nobody waits for
// is late or made up, and ignored.
func (s *session) deliver(msg message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.waiting[msg.id.key]; ok {
		delete(s.waiting, msg.id.key)
		q.response <- msg
	}
}

// withdraw tells the client that some of the questions need no response any
// more, and ends the waits for them.
func (s *session) withdraw(moot func(*question) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, q := range s.waiting {
		if !moot(q) {
			continue
		}
		delete(s.waiting, key)
		close(q.response)
		q.out.offer(s.conn.server.encoded(encodeMessage("", mcp.MethodNotificationCancelled, cancelledParams{RequestID: q.id})))
	}
}

// cancelledParams are the parameters of notifications/cancelled.
type cancelledParams struct {
	RequestID string `json:"requestId"`
}
