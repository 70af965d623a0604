package server

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// headerTimeout bounds how long a client may take to send headers,
	// bodyTimeout a whole request, and writeTimeout to read one message.
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	writeTimeout  = 30 * time.Second
	// keepAlive is how long a connection may stay open between two requests.
	keepAlive = 2 * time.Minute
	// maxHeader is how many bytes of headers are read.
	maxHeader = 64 << 10
	// maxConnections is how many connections are open at once; further ones wait
	// to be accepted.
	maxConnections = 1024

	defaultMaxSessions    = 256
	defaultSessionTimeout = 30 * time.Minute
)

// HTTPOptions say who may use a server over HTTP, and how much.
type HTTPOptions struct {
	// Token is what every request but those to /healthz has to carry as a bearer
	// token; empty: nothing.
	Token string

	// Origins are the origins of web pages that may use the server, such as
	// https://example.org, beside its own when the listener is of this machine
	// only.
	Origins []string

	// Hosts are the names clients may call the server by, beside localhost and
	// addresses.
	Hosts []string

	// FromThread reports whether a command of a thread has opened the connection between
	// two addresses of this machine. It is asked once a connection; nil: none has.
	FromThread func(client, server netip.AddrPort) bool

	// MaxSessions is how many clients may have a session at once; 0 means 256.
	MaxSessions int

	// SessionTimeout ends the session of a client that sends nothing, waits for
	// nothing and has no stream open for so long; 0 means 30 minutes.
	SessionTimeout time.Duration

	// Page serves the paths that IsPage has, and looks after origins and tokens of its
	// own; nil: there is none. Host names are checked in front of it.
	Page   http.Handler
	IsPage func(path string) bool

	// PageOnly: nothing but the page, Handlers and /healthz is served.
	PageOnly bool

	// Handlers serve further paths, by patterns of [http.ServeMux], behind the same
	// checks of host, origin and token as the transports. A pattern that one of these
	// has too makes the server panic when it starts, as [http.ServeMux] does.
	Handlers map[string]http.Handler
}

// ServeHTTPOn serves clients on listener, which it closes: Streamable HTTP at
// /mcp, the HTTP with SSE of revision 2024-11-05 at /sse and /message, and
// /healthz.
//
// It returns context.Cause(ctx) when ctx ends, and the error when the listener
// fails. Calls in flight then end with the same cause; an answer within
// two seconds is still written. It takes at most about twice as long.
func (s *Server) ServeHTTPOn(ctx context.Context, listener net.Listener, opts HTTPOptions) error {
	w := newWeb(s, opts)
	srv := &http.Server{
		Handler:           newGuard(s, isLoopback(listener.Addr()), opts, w.mux()),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,  // until a handler has the whole request
		WriteTimeout:      writeTimeout, // until a handler sets another, before each write
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(s.log, "", 0),
		// Requests outlive ctx by the time their calls get to answer.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: opts.withPeer,
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(newLimitedListener(listener, maxConnections)) }()

	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("accept clients: %w", err)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		w.close(ending, err)
	}()
	if shutdownErr := srv.Shutdown(ending); shutdownErr != nil {
		_ = srv.Close() // clients that still read or write have had the time
	}
	<-closed
	return err
}

// mux maps the paths of the transports.
func (t *web) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n")) // the prober has gone, which is its affair
	})
	mux.HandleFunc("POST /mcp", t.post)
	mux.HandleFunc("GET /mcp", t.listen)
	mux.HandleFunc("DELETE /mcp", t.delete)
	mux.HandleFunc("GET /sse", t.sse)
	mux.HandleFunc("POST /message", t.message)
	for pattern, handler := range t.handlers {
		mux.Handle(pattern, handler)
	}
	return mux
}

// refuseHTTP answers a request that is not served with an error, as JSON-RPC
// writes them: some clients show the body. The id is that of the JSON-RPC
// request in it, if there is one: a response has the id of another's request.
func (s *Server) refuseHTTP(w http.ResponseWriter, r *http.Request, status int, id requestID, e *rpcError) {
	s.log.Debug().Str("method", r.Method).Str("path", r.URL.Path).Str("remote", r.RemoteAddr).
		Int("status", status).Str("reason", e.Message).Msg("HTTP request refused")
	writeJSON(w, status, s.encoded(encodeRefusal(id, e)))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	allowTime(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// allowTime starts the time that the next write may take.
func allowTime(w http.ResponseWriter) {
	// A deadline that cannot be set is that of a connection that is gone.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// stayOpen lets a request take any time from now on, as all of it was read.
// Otherwise the end of the time to read would look like a client that has gone.
func stayOpen(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// limitedListener has at most so many connections open.
type limitedListener struct {
	net.Listener
	places chan struct{} // has a token for each connection
	closed chan struct{}
}

func newLimitedListener(l net.Listener, most int) *limitedListener {
	return &limitedListener{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close is called once, by the HTTP server.
func (l *limitedListener) Close() error {
	close(l.closed)
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free func() // its place; does so once
}

func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// CloseWrite lets the HTTP server end a connection so that a client that still
// sends gets to read the answer.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
