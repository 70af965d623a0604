package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

// slot is the place of one server's connection. Its lock is held for moments alone:
// a server may take a minute to start, and seconds to end.
type slot struct {
	mu      sync.Mutex
	at      *connection
	pending *attempt      // while it connects
	ended   chan struct{} // closed when the connections before have ended, with their servers
	closed  bool
}

// attempt is a connection that is being made, for all who wait for it. It goes on when
// the caller that began it leaves: the others, and the next call, want it too.
type attempt struct {
	cancel context.CancelCauseFunc
	dialed atomic.Pointer[connection] // which is being greeted

	done chan struct{} // closed when the rest stands
	conn *connection
	err  error
}

func newSlot() *slot {
	s := &slot{ended: make(chan struct{})}
	close(s.ended)
	return s
}

// connect returns the connection, and makes it when there is none. It waits no longer
// than ctx, whatever becomes of the attempt.
func (s *slot) connect(ctx context.Context, server Server, version string) (*connection, error) {
	if err := ctx.Err(); err != nil {
		return nil, &FailedError{ServerID: server.ID, Doing: "start", Err: err}
	}
	conn, a, err := s.look(ctx, server, version)
	if conn != nil || err != nil {
		return conn, err
	}
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, &FailedError{ServerID: server.ID, Doing: "wait until it greets", Err: ctx.Err(), Stderr: a.stderr()}
	}
}

// stderr is what the server has written so far.
func (a *attempt) stderr() string {
	if conn := a.dialed.Load(); conn != nil {
		return conn.stderr()
	}
	return ""
}

// look returns the connection that there is, or else the attempt to make one.
func (s *slot) look(ctx context.Context, server Server, version string) (*connection, *attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, errClosed
	case s.at != nil && !s.at.lost():
		return s.at, nil, nil
	case s.pending == nil:
		s.begin(ctx, server, version)
	}
	return nil, s.pending, nil
}

// begin makes a connection in the background, when the one before has ended. The lock
// is held.
func (s *slot) begin(ctx context.Context, server Server, version string) {
	s.drop()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a, before := &attempt{cancel: cancel, done: make(chan struct{})}, s.ended
	s.pending = a
	go func() {
		defer cancel(nil)
		<-before
		conn, err := a.open(ctx, server, version)
		s.settle(a, conn, err)
	}()
}

// settle tells all who wait for an attempt what came of it.
func (s *slot) settle(a *attempt, conn *connection, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.closed {
		err = errClosed
	}
	s.pending = nil
	if err == nil {
		s.at, a.conn = conn, conn
	} else if a.err = err; conn != nil {
		s.end(conn)
	}
	close(a.done)
}

// open starts a server and greets it. A connection that is returned with an error has
// to be ended.
func (a *attempt) open(ctx context.Context, server Server, version string) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(noting(ctx), connectTimeout, errTimeout)
	defer cancel()
	conn, err := dial(ctx, server)
	if err != nil {
		return nil, &FailedError{ServerID: server.ID, Doing: "start", Err: reason(ctx, err)}
	}
	a.dialed.Store(conn)
	if err := greet(ctx, conn.Client, version); err != nil {
		failed := conn.why(ctx, reason(ctx, err))
		failed.ServerID, failed.Doing = server.ID, "greet"
		return conn, failed
	}
	return conn, nil
}

// reason is why an attempt failed, where it is for another cause than what the library says.
func reason(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return fmt.Errorf("it did not greet within %s: %w", connectTimeout, errTimeout)
	case errors.Is(cause, errClosed):
		return errClosed
	}
	return err
}

func greet(ctx context.Context, c *client.Client, version string) error {
	// The session outlives the attempt.
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	var request mcp.InitializeRequest
	request.Params.ClientInfo = mcp.Implementation{Name: "rye-mcp", Version: version}
	_, err := c.Initialize(ctx, request)
	return err
}

// forget ends a connection which is of no use any more.
func (s *slot) forget(conn *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == conn {
		s.drop()
	}
}

// close ends the connection, or the attempt to make one, and waits for the end of the
// server.
func (s *slot) close() {
	s.mu.Lock()
	s.closed = true
	s.drop()
	a := s.pending
	s.mu.Unlock()
	if a != nil {
		a.cancel(errClosed)
		<-a.done
	}
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	<-ended
}

// drop ends the connection there is. The lock is held.
func (s *slot) drop() {
	if s.at != nil {
		s.end(s.at)
		s.at = nil
	}
}

// end ends a connection in the background, after those before it. The lock is held.
func (s *slot) end(conn *connection) {
	before, ended := s.ended, make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		<-before
		conn.end()
	}()
}
