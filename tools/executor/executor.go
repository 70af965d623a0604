package executor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Builtin is the executor id of tools that are Go functions of this binary.
const Builtin = "rye/core/builtin"

// Executor runs the tools of one project. It is safe for concurrent use.
type Executor struct{ builtins *tool.Registry }

// New returns an executor with these built-in tools. Each has an id of its own.
func New(builtins ...tool.Tool) (*Executor, error) {
	registry, err := tool.NewRegistry(builtins...)
	if err != nil {
		return nil, err
	}
	return &Executor{builtins: registry}, nil
}

// Tool is a tool that can be run.
type Tool struct {
	Definition tool.Definition
	// Chain leads from the tool to what runs it; empty for a tool that was found by
	// its id alone.
	Chain []tool.Link

	call func(context.Context, tool.Env, json.RawMessage) (any, error)
}

// Definitions are those of the built-in tools, by id. The schemas of tools that are
// not shown to anybody are left out.
func (e *Executor) Definitions(shown func(id string) bool) []tool.Definition {
	all := e.builtins.All()
	list := make([]tool.Definition, len(all))
	for i, t := range all {
		if list[i] = tool.OutlineOf(t); shown(list[i].ID) {
			list[i] = t.Definition()
		}
	}
	return list
}

// Has reports whether there is a built-in tool of that id.
func (e *Executor) Has(id string) bool {
	_, known := e.builtins.Get(id)
	return known
}

// Named is the built-in tool of an id.
func (e *Executor) Named(id string) (*Tool, bool) {
	t, known := e.builtins.Get(id)
	if !known {
		return nil, false
	}
	return &Tool{Definition: t.Definition(), call: t.Call}, true
}

// Of is the tool of an item. The error of an item that this version cannot run is
// a *tool.Fault.
func (e *Executor) Of(found *resolve.Found) (*Tool, error) {
	doc, err := found.Tool()
	if err != nil {
		return nil, err
	}
	if doc.ExecutorID != Builtin {
		return nil, tool.Faultf(tool.CodeUnsupported, "the tool %s %s; this version runs built-in tools only", found.ID, needs(found, doc)).
			With("executor_id", doc.ExecutorID).With("path", found.Path).
			WithHint("Run it through rye/bash if that is allowed, or use a built-in tool.")
	}
	t, known := e.Named(found.ID)
	if !known {
		return nil, tool.Faultf(tool.CodeUnsupported, "%s says it is built in, but this version has no such tool", found.ID).
			With("path", found.Path)
	}
	t.Chain = []tool.Link{
		{ItemID: found.ID, Space: found.Space, Path: found.Path},
		{ItemID: Builtin, Space: item.System},
	}
	return t, nil
}

// needs says what a tool needs to run that is not built in.
func needs(found *resolve.Found, doc *item.ToolDoc) string {
	switch {
	case doc.ExecutorID != "":
		return "needs the executor " + doc.ExecutorID
	case found.Ext == ".yaml" || found.Ext == ".yml": // which describe a tool, and are no program
		return "names no executor_id"
	}
	return fmt.Sprintf("needs an interpreter for %s files", found.Ext)
}

// Call is what a tool is run with.
type Call struct {
	Env  tool.Env
	Args json.RawMessage // a JSON object; empty stands for one without members
	// Secrets are those that Args may name by their placeholders; nil when there are
	// none. What the tool returns must be masked.
	Secrets Secrets
}

// Run runs a tool and returns its result, which marshals to JSON. What the caller
// did wrong comes back as a *tool.Fault, a panic as a [tool.PanicError], and any
// other error is a failure of the tool.
func (e *Executor) Run(ctx context.Context, t *Tool, c Call) (any, error) {
	return tool.Guarded(t.Definition.ID, func() (any, error) {
		args := c.Args
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		args, err := Reveal(c.Secrets, t.Definition, args)
		if err != nil {
			return nil, err
		}
		return t.call(ctx, c.Env, args)
	})
}
