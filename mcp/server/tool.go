package server

import (
	"context"
	"encoding/json"
	"fmt"
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
// where it has code, error or hint, has them as strings.
type Tool[In, Out any] struct {
	Name        string // letters, digits, _ and -, at most 46
	Description string // for a model, at most 2 048 bytes
	Annotations Annotations
	// Paged says that the argument max_bytes bounds a part of the answer, the rest of
	// which is short. All tools take that argument; otherwise it bounds the answer.
	Paged bool

	// Handle does the work. Its arguments were validated and defaults filled
	// in. An error becomes a result with isError, see [Options.MapError]. When
	// ctx ends, its cause says why.
	Handle func(ctx context.Context, call Call, in In) (Out, error)
}

// Call is what a handler knows about the call beside its arguments.
type Call struct {
	Progress  func(Progress) // tells the client how far the call is; never nil, safe for concurrent use
	RequestID string         // JSON text of the request's id; empty where the transport does not tell
	TraceID   string         // of the request, in every log line about it; may be empty
	Session   Session
	// Room is how long the answer may be, in bytes of JSON: what a model is shown
	// of it, unless the call asks for more.
	Room int
	// Notices names warnings that hold for all of a place, such as a project. An
	// answer tells those that no answer of this server has told; list is called for
	// the first answer about a place, and for answers with warnings. Never nil.
	Notices func(place string, list func() []string)
}

// Session is the client that calls.
type Session struct {
	ID            string // unique among the clients of this server
	Client        string // name of the client software, as it says
	ClientVersion string
	Protocol      string // protocol revision of this call
}

// Add registers t. It panics on what only the program can have got wrong: a
// name that is taken or not portable, missing texts, types without a schema.
func Add[In, Out any](s *Server, t Tool[In, Out]) {
	switch {
	case !isToolName(t.Name):
		panic(fmt.Sprintf("tool %q: a name has 1 to %d of A-Z a-z 0-9 _ -", t.Name, maxToolName))
	case s.mcp.GetTool(t.Name) != nil:
		panic(fmt.Sprintf("tool %s: added twice", t.Name))
	case t.Annotations.Title == "" || t.Description == "" || len(t.Description) > maxDescription:
		panic(fmt.Sprintf("tool %s: needs a title, and a description of at most %d bytes", t.Name, maxDescription))
	case t.Handle == nil:
		panic(fmt.Sprintf("tool %s: has no handler", t.Name))
	}
	schemas, err := schemasOf[In, Out](s, t.Name)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", t.Name, err))
	}
	s.used[t.Name] = schemas
	call := tool.New(tool.Definition{ID: t.Name, Schema: schemas.Input}, func(ctx context.Context, _ tool.Env, in In) (any, error) {
		return t.Handle(ctx, callFrom(ctx), in)
	})
	s.add(t.Name, t.Description, t.Annotations, t.Paged, call, schemas.Output)
}

func (s *Server) add(name, description string, a Annotations, paged bool, call tool.Tool, output json.RawMessage) {
	definition := mcp.Tool{
		Name:            name,
		Title:           a.Title,
		Description:     description,
		RawInputSchema:  advertised(call.Definition().Schema),
		RawOutputSchema: output,
		Annotations: mcp.ToolAnnotation{
			Title:           a.Title,
			ReadOnlyHint:    &a.ReadOnly,
			DestructiveHint: &a.Destructive,
			IdempotentHint:  &a.Idempotent,
			OpenWorldHint:   &a.OpenWorld,
		},
	}
	fits := outputCheck(tool.Checker(func() (json.RawMessage, error) { return output, nil }))
	s.mcp.AddTool(definition, func(ctx context.Context, req mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
		ctx, now := newAnswering(ctx)
		// tool.New recovers what the handler does; this is for the encoding of
		// what it returned. mcp-go would make a protocol error of either.
		defer func() {
			if v := recover(); v != nil {
				result = s.failure(ctx, name, fits, &tool.PanicError{ToolID: name, Value: v, Stack: debug.Stack()})
			}
		}()
		args := req.Params.RawArguments
		if isNull(args) {
			args = json.RawMessage("{}")
		}
		args, err := now.takeRoom(args, paged, call.Definition().Schema)
		if err != nil {
			return s.failure(ctx, name, fits, err), nil
		}
		out, err := call.Call(ctx, tool.Env{}, args)
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
	call := Call{Progress: func(Progress) {}, TraceID: TraceFrom(ctx), Room: now.room, Notices: now.notice}
	if r := requestFrom(ctx); r != nil {
		call.Progress = r.report
		call.RequestID = r.msg.id.String()
	}
	call.Session.Protocol = mcpserver.RequestProtocolVersion(ctx)
	session := mcpserver.ClientSessionFromContext(ctx)
	if session == nil {
		return call
	}
	call.Session.ID = session.SessionID()
	if known, ok := session.(mcpserver.SessionWithClientInfo); ok {
		client := known.GetClientInfo()
		call.Session.Client, call.Session.ClientVersion = client.Name, client.Version
	}
	return call
}
