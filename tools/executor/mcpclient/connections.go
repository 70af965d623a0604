package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// connectTimeout bounds how long a server may take to start and greet. Servers
	// that a package runner fetches first need more than a moment.
	connectTimeout = 60 * time.Second
	// discoverTimeout is how long a server may be silent when it is asked for the
	// newest protocol, before it is greeted as older ones are.
	discoverTimeout = 3 * time.Second
)

// Connections are connections to servers, made when they are first needed. It is
// safe for concurrent use.
type Connections struct {
	version string

	mu     sync.Mutex
	open   map[string]*slot
	closed bool
}

// New returns no connections yet. Version is that of this program, which servers
// are told.
func New(version string) *Connections {
	return &Connections{version: version, open: make(map[string]*slot)}
}

// Close ends all connections, and the servers that were started for them.
func (c *Connections) Close() {
	c.mu.Lock()
	slots := c.open
	c.open, c.closed = nil, true
	c.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range slots {
		closing.Go(s.close)
	}
	closing.Wait()
}

// connection is a session with a server.
type connection struct {
	*client.Client

	lost   func() bool                               // reports whether it is of no use any more
	why    func(context.Context, error) *FailedError // what is known of a failure
	stderr func() string                             // the end of what its process has written
	end    func()
}

// FailedError says that a server could not be reached, ended, or broke the protocol. Its
// answer to a call is no such failure.
type FailedError struct {
	ServerID string
	Doing    string // what was asked of it
	Err      error
	// Said and Stderr are foreign text: what the server said beyond the protocol, and
	// the end of what its process wrote.
	Said, Stderr string
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("MCP server %s: %s: %v", e.ServerID, e.Doing, e.Err)
}

func (e *FailedError) Unwrap() error { return e.Err }

var errClosed = errors.New("connections to MCP servers are closed")

// use does something with a connection to the server. A session that had been lost
// before is made anew; what was sent once is not sent again, unless the server has
// refused it because it does not know the session any more.
func (c *Connections) use(ctx context.Context, s Server, doing string, do func(context.Context, *connection) error) error {
	if err := s.Check(); err != nil {
		return &FailedError{ServerID: s.ID, Doing: doing, Err: err}
	}
	slot, err := c.slot(s)
	if err != nil {
		return err
	}
	for again := true; ; again = false {
		conn, err := slot.connect(ctx, s, c.version)
		if err != nil {
			return err
		}
		callCtx, cancel := context.WithTimeoutCause(noting(ctx), s.timeout(), errTimeout)
		err = do(callCtx, conn)
		cancel()
		if errors.Is(err, transport.ErrSessionTerminated) && again {
			slot.forget(conn)
			continue
		}
		if err == nil {
			return nil
		}
		if conn.lost() {
			slot.forget(conn)
		}
		if cause := context.Cause(callCtx); errors.Is(cause, errTimeout) && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %s: %w", s.timeout(), errTimeout)
		}
		failed := conn.why(callCtx, err)
		failed.ServerID, failed.Doing = s.ID, doing
		return failed
	}
}

var errTimeout = errors.New("its time is over")

func (c *Connections) slot(s Server) (*slot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	key := s.key()
	if c.open[key] == nil {
		c.open[key] = newSlot()
	}
	return c.open[key], nil
}

// Call calls a tool of a server. Arguments are a JSON object. A server's own error
// is a [Result] with IsError; every other error is a *FailedError, or that of ctx.
func (c *Connections) Call(ctx context.Context, s Server, tool string, arguments json.RawMessage) (*Result, error) {
	var result *Result
	err := c.use(ctx, s, "call "+tool, func(ctx context.Context, conn *connection) error {
		var request mcp.CallToolRequest
		request.Params.Name, request.Params.Arguments = tool, arguments
		var said json.RawMessage // which the library decodes well, errors apart
		answer, err := conn.CallTool(hearing(ctx, &said), request)
		if err == nil {
			result, err = resultOf(answer)
		}
		return err
	})
	return result, err
}
