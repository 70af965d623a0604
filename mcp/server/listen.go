package server

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// listening is one subscriptions/listen of a client: from revision 2026-07-28 on, the
// only way to be told of changes.
type listening struct {
	request *request
	id      requestID

	mu   sync.Mutex
	open bool     // it is acknowledged
	held [][]byte // what has changed before
}

// listen tells the client what was established, and then what changes, until it
// cancels the request or goes.
func (s *Server) listen(ctx context.Context, call Call, params mcp.SubscriptionsListenParams) (mcp.ResultMetadata, error) {
	r := requestFrom(ctx)
	if r.out.single {
		return nil, invalidRequest("%s answers with a stream: Accept must name text/event-stream", mcp.MethodSubscriptionsListen)
	}
	l := &listening{request: r, id: r.msg.id}
	established, stop := s.establish(ctx, call, l, params.Notifications)
	defer stop()
	l.acknowledge(s, established)
	if !established.IsEmpty() {
		<-ctx.Done()
	}
	result := &mcp.SubscriptionsListenResult{}
	result.EnsureResultMeta().SetSubscriptionID(l.id)
	return result, nil
}

// establish begins to watch what the client wants to be told of, and returns what of it
// can change at all.
func (s *Server) establish(ctx context.Context, call Call, l *listening, want mcp.SubscriptionFilter) (established mcp.SubscriptionFilter, stop func()) {
	watched := &l.request.conn.watches
	var keys []string
	seen := map[string]bool{}
	watch := func(method, uri string, begin func(changed func()) (stop func(), err error)) bool {
		note := s.notification(method, uri, &l.id)
		key := l.id.key + " " + method + " " + uri
		if err := watched.start(key, func() (func(), error) { return begin(func() { l.tell(note) }) }); err != nil {
			s.logOf(ctx).Debug().Err(err).Str("uri", item.Clip(uri, 200)).Msg("not subscribed")
			return false
		}
		keys = append(keys, key)
		return true
	}
	if s.prompts != nil && want.PromptsListChanged {
		established.PromptsListChanged = watch(mcp.MethodNotificationPromptsListChanged, "",
			func(changed func()) (func(), error) { return s.prompts.Watch(ctx, call, changed) })
	}
	if s.resources != nil {
		if want.ResourcesListChanged {
			established.ResourcesListChanged = watch(mcp.MethodNotificationResourcesListChanged, "",
				func(changed func()) (func(), error) { return s.resources.WatchList(ctx, call, changed) })
		}
		for _, uri := range want.ResourceSubscriptions {
			if seen[uri] || (uriParams{URI: uri}).check() != nil {
				continue
			}
			seen[uri] = true
			if watch(mcp.MethodNotificationResourceUpdated, uri,
				func(changed func()) (func(), error) { return s.resources.Watch(ctx, call, uri, changed) }) {
				established.ResourceSubscriptions = append(established.ResourceSubscriptions, uri)
			}
		}
	}
	return established, func() {
		for _, key := range keys {
			watched.stop(key)
		}
	}
}

// acknowledge sends the first message of the subscription, and what it held back.
func (l *listening) acknowledge(s *Server, established mcp.SubscriptionFilter) {
	ack := s.encoded(encodeMessage("", mcp.MCPMethod(mcp.MethodNotificationSubscriptionsAcknowledged), struct {
		Meta          map[string]requestID   `json:"_meta"`
		Notifications mcp.SubscriptionFilter `json:"notifications"`
	}{map[string]requestID{mcp.MetaKeySubscriptionID: l.id}, established}))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request.note(ack)
	for _, note := range l.held {
		l.request.note(note)
	}
	l.open, l.held = true, nil
}

// tell sends that something has changed. It comes once at most before the
// acknowledgement is out, so little is ever held.
func (l *listening) tell(note []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		l.held = append(l.held, note)
		return
	}
	l.request.note(note)
}
