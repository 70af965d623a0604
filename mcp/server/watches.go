package server

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// maxWatches is how many resources and lists one client may be told the changes of.
const maxWatches = 4096

// watches are what a client is told the changes of. The zero value is none.
type watches struct {
	mu    sync.Mutex
	ended bool
	stops map[string]func() // by what is watched
}

// start begins to watch what key names, unless it is watched already.
func (w *watches) start(key string, begin func() (stop func(), err error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, watched := w.stops[key]; watched {
		return nil
	}
	if w.ended {
		return busy("the session has ended")
	}
	if len(w.stops) >= maxWatches {
		return busy("the client is told the changes of %d resources, the most there can be: unsubscribe from some", maxWatches)
	}
	stop, err := begin()
	if err != nil {
		return err
	}
	if w.stops == nil {
		w.stops = make(map[string]func())
	}
	w.stops[key] = stop
	return nil
}

// stop ends a watch, if there is one.
func (w *watches) stop(key string) {
	w.mu.Lock()
	stop := w.stops[key]
	delete(w.stops, key)
	w.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// end ends all watches and lets none begin.
func (w *watches) end() {
	w.mu.Lock()
	stops := w.stops
	w.stops, w.ended = nil, true
	w.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// watchForSession has a client that keeps a session told of the changes of a list it
// has asked for, until the session ends. In revision 2026-07-28 a client asks for
// that by itself.
func (s *Server) watchForSession(ctx context.Context, notification string, begin func(changed func()) (stop func(), err error)) {
	r := requestFrom(ctx)
	if r == nil || mcpserver.IsModernRequest(ctx) || !r.conn.session.Initialized() {
		return
	}
	out, note := r.conn.out, s.notification(notification, "", nil)
	err := r.conn.watches.start(notification, func() (func(), error) { return begin(func() { out.note(note) }) })
	if err != nil {
		s.logOf(ctx).Warn().Err(err).Str("session", r.conn.session.id).Str("notification", notification).Msg("the client is not told of changes")
	}
}

// notification is one about a resource or, without uri, about a list. It belongs to a
// subscription where there is an id of one.
func (s *Server) notification(method, uri string, subscription *requestID) []byte {
	var params struct {
		Meta map[string]requestID `json:"_meta,omitempty"`
		URI  string               `json:"uri,omitempty"`
	}
	params.URI = uri
	if subscription != nil {
		params.Meta = map[string]requestID{mcp.MetaKeySubscriptionID: *subscription}
	}
	if uri == "" && subscription == nil {
		return s.encoded(encodeMessage("", mcp.MCPMethod(method), nil))
	}
	return s.encoded(encodeMessage("", mcp.MCPMethod(method), params))
}
