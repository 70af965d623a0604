package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// session is what mcp-go knows about a client: its identity and capabilities,
// a channel for notifications, and a way to send it requests.
type session struct {
	id   string
	conn *conn

	notes   chan mcp.JSONRPCNotification
	flushes chan chan struct{}
	lent    atomic.Bool   // somebody was given notes, and may send
	stop    chan struct{} // closed to end forward
	ended   chan struct{} // closed when forward ended

	mu          sync.Mutex
	initialized bool
	client      mcp.Implementation
	can         mcp.ClientCapabilities
	protocol    string
	logLevel    mcp.LoggingLevel     // it asked for; "": nothing is told
	mute        bool                 // it declares roots and does not answer
	formless    bool                 // it declares elicitation and does not know it
	visited     map[string]bool      // places that its calls have named
	sent        int                  // requests to the client so far
	waiting     map[string]*question // those without a response, by the key of their id
}

// The interfaces that mcp-go asks of a session.
var (
	_ mcpserver.SessionWithClientInfo      = (*session)(nil)
	_ mcpserver.SessionWithProtocolVersion = (*session)(nil)
	_ mcpserver.SessionWithRoots           = (*session)(nil)
)

func newSession(id string, c *conn) *session {
	return &session{
		id:   id,
		conn: c,
		// mcp-go drops a notification that finds the channel full. forward only
		// ever moves them to the outbox, so a few places do.
		notes:   make(chan mcp.JSONRPCNotification, 64),
		flushes: make(chan chan struct{}),
		stop:    make(chan struct{}),
		ended:   make(chan struct{}),
		waiting: make(map[string]*question),
	}
}

// forward moves mcp-go's notifications to the outbox until stop closes.
func (s *session) forward() {
	defer close(s.ended)
	for {
		select {
		case n := <-s.notes:
			s.send(encode(n))
		case flushed := <-s.flushes:
			s.forwardQueued()
			close(flushed)
		case <-s.stop:
			s.forwardQueued()
			return
		}
	}
}

func (s *session) forwardQueued() {
	for {
		select {
		case n := <-s.notes:
			s.send(encode(n))
		default:
			return
		}
	}
}

// flush returns when every notification that was sent before is in the outbox,
// so that the answer of the request that caused it cannot overtake it.
func (s *session) flush() {
	if !s.lent.Load() {
		return // as to most clients; to ask forward would take turns of two goroutines
	}
	flushed := make(chan struct{})
	select {
	case s.flushes <- flushed:
		<-flushed
	case <-s.ended:
	}
}

func (s *session) send(msg []byte, err error) { s.conn.out.offer(s.conn.server.encoded(msg, err)) }

// ListRoots asks the client for its roots. One that declares them and does not
// answer is not asked again, as every question costs seconds.
func (s *session) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	if s.isMute() {
		return nil, ErrNoRoots
	}
	raw, err := s.ask(ctx, mcp.MethodListRoots, nil)
	switch {
	case errors.Is(err, errNoReader):
		return nil, ErrNoRoots
	case errors.Is(err, context.DeadlineExceeded):
		s.setMute()
		return nil, err
	case err != nil:
		return nil, err
	}
	var result mcp.ListRootsResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("%s: %w", mcp.MethodListRoots, err)
	}
	return &result, nil
}

func (s *session) isMute() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mute
}

func (s *session) setMute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = true
}

// visit notes a place that a call has named.
func (s *session) visit(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.visited == nil {
		s.visited = map[string]bool{}
	}
	s.visited[place] = true
}

func (s *session) hasVisited(place string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visited[place]
}

func (s *session) SessionID() string { return s.id }

// NotificationChannel is called for each notification that mcp-go sends.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification {
	s.lent.Store(true)
	return s.notes
}

func (s *session) Initialize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initialized = true
}

func (s *session) Initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialized
}

func (s *session) SetClientInfo(client mcp.Implementation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

func (s *session) GetClientInfo() mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

func (s *session) SetClientCapabilities(can mcp.ClientCapabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.can = can
}

func (s *session) GetClientCapabilities() mcp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.can
}

// SetProtocolVersion is called by mcp-go with what initialize negotiated.
func (s *session) SetProtocolVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protocol = version
}

func (s *session) ProtocolVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.protocol
}
