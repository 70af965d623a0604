package server

import (
	"context"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxURI is the longest URI of a resource that is looked at, in bytes.
const maxURI = 4096

// Resources are what a client can read by URI. Which there are depends on the call: on
// the project of its client. An error is a *tool.Fault, or becomes one; for a resource
// that does not exist it is a [NotFoundError].
type Resources interface {
	// List returns a page of the resources worth listing; nothing has to be listed to
	// be read. An empty cursor asks for the first, and an empty next says that there are
	// no more.
	List(ctx context.Context, call Call, cursor string) (page []mcp.Resource, next string, err error)
	// Templates are the forms of the URIs that can be read.
	Templates() []mcp.ResourceTemplate
	// Read returns what a resource holds now. A URI is not empty and at most 4 096
	// bytes long.
	Read(ctx context.Context, call Call, uri string) (Reading, error)
	// Complete proposes values for a variable of a template.
	Complete(ctx context.Context, call Call, template string, c Completing) (mcp.Completion, error)
	// WatchList calls changed after what is listed has changed, until stop is called. It
	// outlives the call.
	WatchList(ctx context.Context, call Call, changed func()) (stop func(), err error)
	// Watch calls changed after what a resource holds has changed, until stop is called;
	// the last change of a resource is always told. It outlives the call. A resource
	// that does not exist may come to be; a URI that can never name one is refused.
	Watch(ctx context.Context, call Call, uri string, changed func()) (stop func(), err error)
}

// Reading is what was read from a resource.
type Reading struct {
	Contents []mcp.ResourceContents
	// Keep is how long a client may use it again without asking; 0: not at all.
	Keep time.Duration
	// Shared says that it is the same for all users of this version of the program.
	Shared bool
}

// OfferResources has the server offer resources. It is called before the first client
// comes.
func (s *Server) OfferResources(r Resources) {
	mcpserver.WithResourceCapabilities(true, true)(s.mcp)
	s.offerCompletion()
	s.resources = r
	Handle(s, mcp.MethodResourcesList, Always, func(ctx context.Context, call Call, params page) (mcp.ResultMetadata, error) {
		page, next, err := r.List(ctx, call, params.Cursor)
		if err != nil {
			return nil, err
		}
		s.watchForSession(ctx, mcp.MethodNotificationResourcesListChanged, func(changed func()) (func(), error) { return r.WatchList(ctx, call, changed) })
		result := &mcp.ListResourcesResult{Resources: append([]mcp.Resource{}, page...)}
		result.NextCursor = mcp.Cursor(next)
		return result, nil
	})
	Handle(s, mcp.MethodResourcesTemplatesList, Always, func(ctx context.Context, _ Call, params page) (mcp.ResultMetadata, error) {
		if params.Cursor != "" {
			return nil, tool.Faultf(tool.CodeBadArguments, "%s has one page: leave cursor out", mcp.MethodResourcesTemplatesList)
		}
		result := &mcp.ListResourceTemplatesResult{ResourceTemplates: r.Templates()}
		keep(ctx, result, keepFixed, false)
		return result, nil
	})
	Handle(s, mcp.MethodResourcesRead, Always, func(ctx context.Context, call Call, params uriParams) (mcp.ResultMetadata, error) {
		if err := params.check(); err != nil {
			return nil, err
		}
		read, err := r.Read(ctx, call, params.URI)
		if err != nil {
			return nil, err
		}
		result := &mcp.ReadResourceResult{Contents: append([]mcp.ResourceContents{}, read.Contents...)}
		keep(ctx, result, read.Keep, read.Shared)
		return result, nil
	})
	Handle(s, mcp.MethodResourcesSubscribe, Legacy, s.subscribe)
	Handle(s, mcp.MethodResourcesUnsubscribe, Legacy, s.unsubscribe)
}

// keepFixed is how long clients may keep what does not change while a server runs: it
// may be replaced by one of another version.
const keepFixed = 10 * time.Minute

// keep says how long a client may use a result again. Earlier revisions than 2026-07-28
// have no words for it.
func keep(ctx context.Context, result mcp.CacheHintSetter, ttl time.Duration, shared bool) {
	if !mcpserver.IsModernRequest(ctx) {
		return
	}
	scope := mcp.CacheScopePrivate
	if shared {
		scope = mcp.CacheScopePublic
	}
	result.SetCacheHints(ttl.Milliseconds(), scope)
}

// uriParams are the params of what is about one resource.
type uriParams struct {
	URI string `json:"uri"`
}

func (p uriParams) check() error {
	switch {
	case p.URI == "":
		return tool.Faultf(tool.CodeBadArguments, "uri is missing")
	case len(p.URI) > maxURI:
		return &NotFoundError{URI: p.URI, Err: tool.Faultf(tool.CodeNotFound, "there is no resource whose URI has %d bytes; at most %d are read", len(p.URI), maxURI)}
	}
	return nil
}

// subscribe has the client told when a resource changes, until it unsubscribes or its
// session ends.
func (s *Server) subscribe(ctx context.Context, call Call, params uriParams) (mcp.ResultMetadata, error) {
	if err := params.check(); err != nil {
		return nil, err
	}
	c := requestFrom(ctx).conn
	note := s.notification(mcp.MethodNotificationResourceUpdated, params.URI, nil)
	err := c.watches.start(updatedKey(params.URI), func() (func(), error) {
		return s.resources.Watch(ctx, call, params.URI, func() { c.out.note(note) })
	})
	if err != nil {
		return nil, err
	}
	return nil, nil //nolint:nilnil // the answer is empty
}

// unsubscribe ends a subscription. There need not be one.
func (s *Server) unsubscribe(ctx context.Context, _ Call, params uriParams) (mcp.ResultMetadata, error) {
	if err := params.check(); err != nil {
		return nil, err
	}
	requestFrom(ctx).conn.watches.stop(updatedKey(params.URI))
	return nil, nil //nolint:nilnil // the answer is empty
}

func updatedKey(uri string) string { return mcp.MethodNotificationResourceUpdated + " " + uri }
