package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

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
	stop    chan struct{} // closed to end forward
	ended   chan struct{} // closed when forward ended

	mu          sync.Mutex
	initialized bool
	client      mcp.Implementation
	can         mcp.ClientCapabilities
	protocol    string
	mute        bool                    // it declares roots and does not answer
	sent        int                     // requests to the client so far
	waiting     map[string]chan message // for the responses to them, by the key of their id
}

// What mcp-go asks a session for.
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
		waiting: make(map[string]chan message),
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
	flushed := make(chan struct{})
	select {
	case s.flushes <- flushed:
		<-flushed
	case <-s.ended:
	}
}

func (s *session) send(msg []byte, err error) { s.conn.out.offer(s.conn.server.encoded(msg, err)) }

// ask sends a request to the client and waits for its response. It goes with
// the messages about the call that ctx belongs to.
func (s *session) ask(ctx context.Context, method mcp.MCPMethod, params any) (json.RawMessage, error) {
	out := s.reach(ctx)
	if out == nil {
		return nil, ErrNoRoots
	}
	s.mu.Lock()
	s.sent++
	id := "rye-" + strconv.Itoa(s.sent) // a string, as clients number their own requests
	key := `"` + id
	response := make(chan message, 1)
	s.waiting[key] = response
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, key)
	}()

	out.put(s.conn.server.encoded(encodeMessage(id, method, params)))
	select {
	case msg := <-response:
		if msg.err != nil {
			return nil, fmt.Errorf("%s: client answered: %s (%d)", method, msg.err.Message, msg.err.Code)
		}
		return msg.result, nil
	case <-ctx.Done():
		out.offer(s.conn.server.encoded(encodeMessage("", mcp.MethodNotificationCancelled, cancelledParams{RequestID: id})))
		return nil, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// cancelledParams are the parameters of notifications/cancelled.
type cancelledParams struct {
	RequestID string `json:"requestId"`
}

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
	if response, ok := s.waiting[msg.id.key]; ok {
		delete(s.waiting, msg.id.key)
		response <- msg
	}
}

// ListRoots asks the client for its roots. One that declares them and does not
// answer is not asked again, as every question costs seconds.
func (s *session) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	if s.isMute() {
		return nil, ErrNoRoots
	}
	raw, err := s.ask(ctx, mcp.MethodListRoots, nil)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			s.setMute()
		}
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

func (s *session) SessionID() string { return s.id }

func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

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
