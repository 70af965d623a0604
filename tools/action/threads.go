package action

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Threads is what the actions need from the orchestrator. Results marshal to
// the JSON shapes of the MCP surface.
type Threads interface {
	// Start starts a thread for a directive and, unless Async is set, waits for
	// it.
	Start(ctx context.Context, c Caller, r StartRequest) (any, error)
	// Plan says what Start would do, and does nothing.
	Plan(ctx context.Context, c Caller, r StartRequest) (any, error)
	// StartTool runs a tool in a process of its own and does not wait.
	StartTool(ctx context.Context, c Caller, r ToolRequest) (any, error)
	// Operate runs an operation by its name, with parameters of that operation.
	Operate(ctx context.Context, c Caller, operation string, params tool.Object) (any, error)
	// Orchestrator defines the tool that runs operations, with their names and
	// parameters.
	Orchestrator() (tool.Definition, error)
	// Names are those of the operations.
	Names() []string
	// Runs tells which item a thread runs.
	Runs(ctx context.Context, id thread.ID) (itemID string, err error)
}

// The ends of a question to the person.
var (
	// ErrNobodyToAsk: no person is in reach.
	ErrNobodyToAsk = errors.New("nobody can be asked")
	// ErrCallAgain: the call ends with the question, and is made again with the
	// answer.
	ErrCallAgain = errors.New("the call is made again with the answer")
)

// Caller is who asks.
type Caller struct {
	Env      tool.Env
	InThread bool
	Person   bool   // a person at a terminal, who may raise the limits of any root
	By       string // who that is in words, for records; empty inside threads
	// Origin is the client that calls, which is told of what it starts; nobody inside
	// threads and at a terminal.
	Origin thread.Origin
	// Hold is how long a client waits for an answer to a call that names no time; 0 where
	// that is not known.
	Hold time.Duration
	// Detached says that the caller is answered with a handle of the thread that a call
	// starts: it is not waited for, whatever the call says.
	Detached bool
	// Progress is told about a long wait; nil when nobody listens.
	Progress func(any)
	// Ask puts a question to the person; nil where nobody is in reach. The error is
	// [ErrNobodyToAsk] when that shows only now, or [ErrCallAgain], with which the
	// whole call must end.
	Ask func(context.Context, thread.Question) (thread.Answer, error)
	// Room is how long the answer may be, in bytes of JSON. A list makes its pages
	// shorter then; 0 leaves it to those who show the answer.
	Room int
	// Started is told which thread the call started, before it is waited for;
	// nil when nobody listens.
	Started func(id thread.ID, item string)
	// Hook says that this is an action of a hook; nil for all other calls.
	Hook *HookCall
	// Allow checks a required capability such as
	// rye.execute.tool.rye.file-system.write. It returns a *tool.Fault with
	// CodePermissionDenied that names the missing one. Nil outside threads,
	// where everything is allowed; a nil Allow inside a thread denies.
	Allow func(capability string) error
	// Secrets are those of the calling thread; nil when it has none.
	Secrets executor.Secrets
}

// Told is the [Caller.Progress] of a caller for progress of one type; nil when it does
// not listen.
func Told[T any](c Caller) func(T) {
	if c.Progress == nil {
		return nil
	}
	return func(now T) { c.Progress(now) }
}

// HookCall is what follows for a call from its being an action of a hook.
type HookCall struct {
	Exempt bool     // the hook is part of the program: no capabilities are asked for
	Firing []string // ids of hooks that what the call starts must not fire again
	Ended  bool     // the thread has ended, and these are its last hooks
}

// StartRequest asks for a thread.
type StartRequest struct {
	Directive   string          // item id
	Inputs      map[string]any  // as given, not yet validated; with placeholders of the caller's secrets
	Async       bool            // answer as soon as the thread is started
	Model       string          // "provider/model", a model or a tier; empty: the directive's choice
	Limits      item.LimitSet   // as given, not yet validated
	WaitSeconds *float64        // longest wait of a synchronous start; nil: the caller's default
	RequestKey  string          // a repeated key returns the same thread
	Name        string          // what people see in lists; empty: the first words of the prompt
	Metadata    json.RawMessage // an object to note of the thread; may be empty
	Workspace   string          // one of thread.WorkspaceTypes; empty: the directive's choice
	// Parent is a parent named by an MCP client. Empty inside threads, whose
	// parent is the caller's own Env.ThreadID.
	Parent thread.ID
}

// ToolRequest asks for a tool run in the background.
type ToolRequest struct {
	ToolID     string      // item id
	Parameters tool.Object // validated against the tool's schema
	RequestKey string      // a repeated key returns the same run
	Warnings   []string    // of what was found out about the item already
}
