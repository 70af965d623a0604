package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

// web is the server of all clients that come over HTTP.
type web struct {
	server      *Server
	maxSessions int
	timeout     time.Duration
	handlers    map[string]http.Handler // of further paths

	anonymous  *load          // of requests without a session
	workers    *workerPool    // of all clients
	background sync.WaitGroup // ends of connections

	mu       sync.Mutex
	closing  bool
	clients  map[*webClient]struct{}
	sessions map[string]*webClient // by key
}

// webClient is one client: for as long as its session lasts, or for one request
// of a revision without sessions.
type webClient struct {
	conn *conn
	key  string // what its requests name it by, a secret; empty without session
	sse  bool   // its session is that of a stream at /sse

	busy int         // requests that are being served, streams too; under web.mu
	idle *time.Timer // ends the session; runs while busy is 0
}

func newWeb(s *Server, opts HTTPOptions) *web {
	t := &web{
		server: s, maxSessions: opts.MaxSessions, timeout: opts.SessionTimeout, handlers: opts.Handlers,
		anonymous: new(load), workers: newWorkerPool(), clients: map[*webClient]struct{}{}, sessions: map[string]*webClient{},
	}
	if t.maxSessions <= 0 {
		t.maxSessions = defaultMaxSessions
	}
	if t.timeout <= 0 {
		t.timeout = defaultSessionTimeout
	}
	return t
}

// open starts the session of a new client, which is busy until left.
func (t *web) open(ctx context.Context, sse bool) (*webClient, *rpcError) {
	c := &webClient{key: rand.Text(), sse: sse}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return nil, busy("the server is shutting down")
	}
	if len(t.sessions) >= t.maxSessions {
		return nil, busy("%d clients have a session, the most that are served at once: end one, or try again later", t.maxSessions)
	}
	transport := "http"
	if sse {
		transport = "sse"
	}
	c.conn = newConn(t.server, transport, newOutbox(), new(load), t.workers)
	if err := c.conn.register(ctx); err != nil {
		c.conn.end(ctx, err)
		return nil, internalError("%v", err)
	}
	c.busy = 1
	t.clients[c] = struct{}{}
	t.sessions[c.key] = c
	return c, nil
}

// openOnce makes a client for one request whose messages all go to out.
func (t *web) openOnce(out *outbox) (*webClient, *rpcError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return nil, busy("the server is shutting down")
	}
	c := &webClient{conn: newConn(t.server, "http", out, t.anonymous, t.workers)}
	t.clients[c] = struct{}{}
	return c, nil
}

// enter finds the session with a key and keeps it busy until left. Without such
// a session it returns nil.
func (t *web) enter(key string, sse bool) *webClient {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.sessions[key]
	if c == nil || c.sse != sse {
		return nil
	}
	c.busy++
	if c.idle != nil {
		c.idle.Stop()
	}
	return c
}

// leave says that a request of the session was served, which may have ended it.
func (t *web) leave(ctx context.Context, c *webClient) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.busy--
	if _, live := t.clients[c]; live && c.busy == 0 {
		c.idle = time.AfterFunc(t.timeout, func() { t.expire(ctx, c) })
	}
}

// expire ends a session nobody has used for a while.
func (t *web) expire(ctx context.Context, c *webClient) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.busy == 0 {
		t.endLocked(ctx, c)
	}
}

// end says that a client has gone. Calls that it left in flight end in the
// background, as they may take a moment to return.
func (t *web) end(ctx context.Context, c *webClient) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(ctx, c)
}

func (t *web) endLocked(ctx context.Context, c *webClient) {
	if _, live := t.clients[c]; !live || t.closing {
		return // ended already, or about to be
	}
	t.forget(c)
	t.background.Go(func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		c.conn.end(ending, ErrClientGone)
	})
}

// forget takes a client out of the books. The caller holds t.mu.
func (t *web) forget(c *webClient) {
	delete(t.clients, c)
	delete(t.sessions, c.key)
	if c.idle != nil {
		c.idle.Stop()
	}
}

// close ends all clients, at the latest when ctx ends, and lets no more in.
func (t *web) close(ctx context.Context, cause error) {
	t.mu.Lock()
	t.closing = true
	for c := range t.clients {
		t.background.Go(func() { c.conn.end(ctx, cause) })
	}
	t.mu.Unlock()
	t.background.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.clients {
		t.forget(c)
	}
	close(t.workers.stop)
}
