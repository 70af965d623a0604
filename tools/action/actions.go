package action

import (
	"context"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Deps is what the actions work with; all of it belongs to one project.
type Deps struct {
	Resolver *resolve.Resolver
	// Executes finds the items that are executed, where those are not what Resolver finds:
	// a thread may work by a copy of its items; nil: Resolver does.
	Executes *resolve.Resolver
	Search   func(context.Context, search.Query) (search.Page, error)
	Executor *executor.Executor
	Threads  Threads
	// Compose makes a directive, which may be used, ready for the caller's own
	// model. Inputs are validated; of is the thread that calls, or empty.
	Compose func(ctx context.Context, of thread.ID, found *resolve.Found, inputs map[string]any) (*Composed, error)
	Trust   *trust.Gate
	Key     func() (*sign.Key, error) // the user's signing key, or sign.ErrNoKey
	Now     func() time.Time
}

// Actions are the primary actions of one project. They are safe for concurrent
// use. Every error they return is a *tool.Fault.
type Actions struct{ Deps }

// New returns the actions over d, all of whose fields must be set.
func New(d Deps) *Actions { return &Actions{Deps: d} }

// Tools returns the four actions as tools called by c, named rye_execute,
// rye_fetch, rye_search and rye_sign, as threads are offered them. The environment of
// a call replaces that of c.
func (a *Actions) Tools(c Caller) []tool.Tool {
	return []tool.Tool{
		bind(c, tool.Definition{ID: "rye_execute", Description: executeDescription}, a.Execute),
		bind(c, tool.Definition{ID: "rye_fetch", Description: fetchDescription, Paged: true}, a.Fetch),
		bind(c, tool.Definition{
			ID: "rye_search", Description: searchDescription, ReadOnly: true, Paged: true,
			Untold: []string{"fields", "filters", "fuzzy", "proximity", "sort_by", "source"}, // rye/core/search tells of them
		}, a.Search),
		bind(c, tool.Definition{ID: "rye_sign", Description: signDescription}, a.Sign),
	}
}

const (
	executeDescription = "Execute an item by id. A directive is a task: inline, its text comes back for you to carry out; " +
		"forked, it runs in a thread of its own with its own budget. A tool runs and its result comes back. Knowledge is " +
		"returned as text. Find ids with rye_search, read about an item with rye_fetch."
	fetchDescription  = "Read one item by id: its content, metadata and where it stands; with destination, copy it there. With query instead of item_id, search."
	searchDescription = "Find directives, tools and knowledge by words in their name, description and text. Knowledge rye/core/search has more options."
	signDescription   = "Check an item of the project or user space and sign it with the user's key; a pattern signs several."
)

// Tool is one of them by its name.
func (a *Actions) Tool(c Caller, name string) (tool.Tool, bool) {
	tools := a.Tools(c)
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Definition().ID == name })
	if i < 0 {
		return nil, false
	}
	return tools[i], true
}

func bind[In, Out any](c Caller, d tool.Definition, do func(context.Context, Caller, In) (Out, error)) tool.Tool {
	d.Untold = append(d.Untold, "project_path") // a thread stays in its project
	return tool.New(d, func(ctx context.Context, env tool.Env, in In) (any, error) {
		caller := c
		caller.Env = env
		out, err := do(ctx, caller, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	})
}
