package server

import (
	_ "embed" // instructions.md
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Causes of the end of a call's context, read with context.Cause.
var (
	// ErrRequestCancelled means that the client cancelled this one request.
	ErrRequestCancelled = errors.New("request cancelled by the client")
	// ErrClientGone means that the client closed its end, or no longer reads.
	// It is a [thread.ErrShutdown]: the threads started for the client go on.
	ErrClientGone error = clientGoneError{}
)

type clientGoneError struct{}

func (clientGoneError) Error() string { return "client disconnected" }

func (clientGoneError) Is(target error) bool { return target == thread.ErrShutdown }

// instructions tell a model how to use the server. Clients cut at 4 096 bytes.
//
//go:embed instructions.md
var instructions string

// Options are what a server needs from outside.
type Options struct {
	Version string // of rye-mcp, shown to clients

	// MapError turns an error of a handler that is not a *tool.Fault into one.
	// Where it is nil or returns nil, [tool.AsFault] does.
	MapError func(error) *tool.Fault

	// Log gets a line for every call of a tool, panics of handlers and, at level
	// debug, other requests and refused messages; the zero Logger drops them. It
	// must not write to the stream that is served.
	Log zerolog.Logger

	// Schemas holds the schemas of tools by name, as [Add] would derive them from
	// the tools' types; deriving them takes most of a server's start. Tools that
	// are not in it get theirs derived.
	Schemas map[string]Schemas

	// OutputSchemas tells clients what the answers of tools look like. It is three
	// quarters of what the tools take to list, and no client shows it to its model.
	OutputSchemas bool

	// Trace makes an id for each request, which all its log lines carry and
	// handlers read with [TraceFrom]. Nil means that requests have none.
	Trace func() string
}

// Server is an MCP server named rye. Its methods are safe for concurrent use.
type Server struct {
	mcp         *mcpserver.MCPServer
	version     string
	methods     map[mcp.MCPMethod]method // those that mcp-go does not see
	prompts     Prompts                  // nil: none are offered
	resources   Resources                // nil: none are offered
	mapError    func(error) *tool.Fault
	log         zerolog.Logger
	newTrace    func() string
	schemas     map[string]Schemas // given
	used        map[string]Schemas // of the tools
	tellsOutput bool               // clients are told the output schemas
	sessions    atomic.Int64       // clients served so far, for session ids
	pending     pendingElicitations
	kept        kept
	notices     noticeBoard
	serving     sync.Map // ids of the sessions that go on
	elsewhere   Elsewhere
}

// New returns a server without tools, prompts and resources.
func New(opts Options) *Server {
	s := &Server{
		version: opts.Version,
		methods: map[mcp.MCPMethod]method{},
		mcp: mcpserver.NewMCPServer(serverName, opts.Version,
			// The list of tools is fixed before the first client comes.
			mcpserver.WithToolCapabilities(false),
			mcpserver.WithMethodCacheHints(mcp.MethodToolsList, keepFixed.Milliseconds(), mcp.CacheScopePrivate),
			mcpserver.WithMethodCacheHints(mcp.MethodServerDiscover, keepFixed.Milliseconds(), mcp.CacheScopePrivate),
			mcpserver.WithInstructions(strings.TrimSpace(instructions)),
		),
		mapError:    opts.MapError,
		log:         opts.Log,
		newTrace:    opts.Trace,
		schemas:     opts.Schemas,
		used:        map[string]Schemas{},
		tellsOutput: opts.OutputSchemas,
	}
	about(s.mcp)
	s.offerLogging()
	Handle(s, mcp.MethodSubscriptionsListen, Modern, s.listen)
	return s
}

// Serves reports whether the session of an id goes on. One of a single request never
// does.
func (s *Server) Serves(session string) bool {
	_, goesOn := s.serving.Load(session)
	return goesOn
}

// Schemas are those of the tools that were added, by name. Their inputs are closed,
// which clients are not told.
func (s *Server) Schemas() map[string]Schemas { return s.used }
