package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxDescription is the longest description of a tool, in bytes. Clients cut at
// 4 096 and spend context on every byte.
const maxDescription = 2048

// maxToolName is the longest name in bytes: with the prefix that a client puts
// before it, it has to stay within 64 characters.
const maxToolName = 46

// isToolName reports whether every client leaves a name as it is.
func isToolName(name string) bool {
	portable := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
	}
	return name != "" && len(name) <= maxToolName && strings.TrimLeftFunc(name, portable) == ""
}

// Annotations tell clients how careful to be with a tool. All of them are
// always sent, because the protocol's defaults are the worst case: destructive
// and open world.
type Annotations struct {
	Title       string // for people
	ReadOnly    bool   // changes nothing; clients may run several at once
	Destructive bool   // may destroy something, and not only add
	Idempotent  bool   // a second call with the same arguments changes nothing more
	OpenWorld   bool   // reaches beyond this machine
}

// Tool is one MCP tool with typed input and output. The schemas come from In
// and Out by [tool.SchemaFor]. Out is a struct that has the member success and,
// where it has code, error or hint, has them as strings. All tools take the
// argument max_bytes, which bounds the answer, or, where In has it, a part of the
// answer, the rest of which is short.
type Tool[In, Out any] struct {
	Name        string // letters, digits, _ and -, at most 46
	Description string // for a model, at most 2 048 bytes
	Annotations Annotations
	// Common are arguments beside those of In. They are taken off before In is
	// decoded, also where it has one of the name itself; see [Call.Common].
	Common []tool.Text
	// Untold are arguments, of In or common ones, that are taken and that clients are
	// not told of: another tool does the same, or hardly anybody needs them.
	Untold []string

	// Meta are keys that clients act on.
	Meta map[string]any

	// Handle does the work. Its arguments were validated and defaults filled
	// in. An error becomes a result with isError, see [Options.MapError]. When
	// ctx ends, its cause says why.
	Handle func(ctx context.Context, call Call, in In) (Out, error)
}

// Untyped is a tool whose types somebody else knows, such as an entry of a table of
// operations.
type Untyped struct {
	Name, Description string
	Annotations       Annotations
	Common            []tool.Text
	Untold            []string
	Meta              map[string]any
	// Whole says that a program reads the answers, which are not cut.
	Whole bool
	// Input and Output derive the schemas. They are not called where the server was
	// given those of the tool.
	Input  func(more ...tool.Text) (json.RawMessage, error)
	Output func() (json.RawMessage, error)
	// Bind returns what a call does: it checks arguments against the schema of the
	// input, decodes them and does the work, as [Tool.Handle] does.
	Bind func(schema json.RawMessage) func(ctx context.Context, call Call, args json.RawMessage) (any, error)
}

// Call is what a handler knows about the call beside its arguments.
type Call struct {
	Progress  func(Progress) // tells the client how far the call is; never nil, safe for concurrent use
	RequestID string         // JSON text of the request's id; empty where the transport does not tell
	TraceID   string         // of the request, in every log line about it; may be empty
	Session   Session
	// Common holds the common arguments that were given.
	Common map[string]string
	// Room is how long the answer may be, in bytes of JSON: what a model is shown
	// of it, unless the call asks for more.
	Room int
	// Notices names warnings that hold for all of a place, such as a project. An
	// answer tells those that no answer of this server has told; list is called for
	// the first answer about a place, and for answers with warnings. Never nil.
	Notices func(place string, list func() []string)
	// Visited reports whether a call of this client has named a place in Notices. A
	// client without a session may have been anywhere.
	Visited func(place string) bool
	// News names what the client is told beside the answer, in its member ended_since:
	// tell is called when the answer is made, with the result of the handler, or nil for
	// a failure, and returns nil when there is nothing. It says little: no answer is cut
	// for it. Never nil.
	News func(tell func(ctx context.Context, result any) json.Marshaler)
}

// Session is the client that calls.
type Session struct {
	ID            string // unique among the clients of this server
	Client        string // name of the client software, as it says
	ClientVersion string
	Protocol      string // protocol revision of this call
	HearsProgress bool   // the client asks for progress of this call
}

// Add registers t. It panics on what only the program can have got wrong: a
// name that is taken or not portable, missing texts, types without a schema.
func Add[In, Out any](s *Server, t Tool[In, Out]) {
	if t.Handle == nil {
		panic(fmt.Sprintf("tool %s: has no handler", t.Name))
	}
	AddUntyped(s, Untyped{
		Name: t.Name, Description: t.Description, Annotations: t.Annotations, Common: t.Common, Untold: t.Untold, Meta: t.Meta,
		Input: tool.SchemaWith[In], Output: tool.SchemaFor[Out],
		Bind: func(schema json.RawMessage) func(context.Context, Call, json.RawMessage) (any, error) {
			decode := tool.Decoder[In](t.Name, func() (json.RawMessage, error) { return schema, nil })
			return func(ctx context.Context, call Call, args json.RawMessage) (any, error) {
				in, err := decode(args)
				if err != nil {
					return nil, err
				}
				return t.Handle(ctx, call, in)
			}
		},
	})
}

// AddUntyped registers t as [Add] does.
func AddUntyped(s *Server, t Untyped) {
	switch {
	case !isToolName(t.Name):
		panic(fmt.Sprintf("tool %q: a name has 1 to %d of A-Z a-z 0-9 _ -", t.Name, maxToolName))
	case s.mcp.GetTool(t.Name) != nil:
		panic(fmt.Sprintf("tool %s: added twice", t.Name))
	case t.Annotations.Title == "" || t.Description == "" || len(t.Description) > maxDescription:
		panic(fmt.Sprintf("tool %s: needs a title, and a description of at most %d bytes", t.Name, maxDescription))
	}
	schemas, err := s.schemasOf(t)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", t.Name, err))
	}
	s.used[t.Name] = schemas
	s.add(t, schemas)
}

func (s *Server) add(t Untyped, schemas Schemas) {
	name, a, call := t.Name, t.Annotations, t.Bind(schemas.Input)
	input, err := parseTree(schemas.Input)
	if err != nil {
		panic(fmt.Sprintf("tool %s: input schema: %v", name, err))
	}
	paged := declares(input, roomArgument)
	definition := mcp.Tool{
		Name:           name,
		Title:          a.Title,
		Description:    t.Description,
		RawInputSchema: told(input, t.Untold),
		Annotations: mcp.ToolAnnotation{
			Title:           a.Title,
			ReadOnlyHint:    &a.ReadOnly,
			DestructiveHint: &a.Destructive,
			IdempotentHint:  &a.Idempotent,
			OpenWorldHint:   &a.OpenWorld,
		},
	}
	if len(t.Meta) > 0 {
		definition.Meta = &mcp.Meta{AdditionalFields: t.Meta}
	}
	if s.tellsOutput {
		if definition.RawOutputSchema, err = schemas.Output(); err != nil {
			panic(fmt.Sprintf("tool %s: output schema: %v", name, err))
		}
	}
	fits := outputCheck(tool.Checker(schemas.Output))
	s.mcp.AddTool(definition, func(ctx context.Context, req mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
		ctx, now := newAnswering(ctx)
		if t.Whole {
			now.room = math.MaxInt
		}
		// mcp-go would make a protocol error of a panic.
		defer func() {
			if v := recover(); v != nil {
				result = s.failure(ctx, name, fits, &tool.PanicError{ToolID: name, Value: v, Stack: debug.Stack()})
			}
		}()
		args := req.Params.RawArguments
		if isNull(args) {
			args = json.RawMessage("{}")
		}
		args, err := now.take(args, t.Common, paged)
		if err != nil {
			return s.failure(ctx, name, fits, err), nil
		}
		if r := requestFrom(ctx); r != nil {
			r.beat()
		}
		out, err := call(ctx, callFrom(ctx), args)
		if err != nil {
			if asking := s.inputRequired(ctx, err); asking != nil {
				return asking, nil
			}
			return s.failure(ctx, name, fits, err), nil
		}
		return s.success(ctx, name, fits, out), nil
	})
}

// callFrom collects what ctx says about the call.
func callFrom(ctx context.Context) Call {
	now := answeringFrom(ctx)
	call := Call{Progress: func(Progress) {}, TraceID: TraceFrom(ctx), Common: now.common, Room: now.room, Notices: now.notice, News: now.tells}
	call.Visited = func(string) bool { return true }
	if r := requestFrom(ctx); r != nil {
		call.Progress = r.report
		call.RequestID = r.msg.id.String()
		call.Session.HearsProgress = r.hearsProgress()
	}
	call.Session.Protocol = mcpserver.RequestProtocolVersion(ctx)
	client := mcpserver.ClientSessionFromContext(ctx)
	if client == nil {
		return call
	}
	call.Session.ID = client.SessionID()
	if s, ok := client.(*session); ok && !mcp.IsModernProtocol(call.Session.Protocol) {
		call.Visited = s.hasVisited
		call.Notices = func(place string, list func() []string) {
			s.visit(place)
			now.notice(place, list)
		}
	}
	if known, ok := client.(mcpserver.SessionWithClientInfo); ok {
		info := known.GetClientInfo()
		call.Session.Client, call.Session.ClientVersion = info.Name, info.Version
	}
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientInfo != nil { // that of a request without a session
		call.Session.Client, call.Session.ClientVersion = info.ClientInfo.Name, info.ClientInfo.Version
	}
	return call
}
