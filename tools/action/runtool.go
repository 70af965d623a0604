package action

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// BuiltinExecutor is the executor id of tools that are Go functions of this
// binary.
const BuiltinExecutor = "rye/core/builtin"

// ToolResult is what a tool returned.
type ToolResult struct {
	Success    bool       `json:"success"`
	Type       item.Kind  `json:"type"`
	ItemID     string     `json:"item_id"`
	Space      item.Space `json:"space"`
	Chain      []Link     `json:"chain" jsonschema:"from the tool to what ran it"`
	DurationMS int64      `json:"duration_ms" jsonschema:"milliseconds the tool ran"`
	Warnings   []string   `json:"warnings,omitempty"`
	Data       any        `json:"data" jsonschema:"the tool's own result"`

	paged bool
}

// Attachments are those of the tool's own result.
func (r *ToolResult) Attachments() []tool.Attachment { return tool.AttachmentsOf(r.Data) }

// Paged reports whether the tool pages by itself.
func (r *ToolResult) Paged() bool { return r.paged || tool.IsPage(r.Data) }

// Link is one element of an executor chain.
type Link struct {
	ItemID string     `json:"item_id"`
	Space  item.Space `json:"space"`
	Path   string     `json:"path,omitempty"`
}

func (a *Actions) executeTool(ctx context.Context, c Caller, r ExecuteRequest, found usable, m mode) (any, error) {
	builtin, err := a.builtin(found.Found)
	if err != nil {
		return nil, err
	}
	if r.DryRun || m.async {
		// Otherwise the tool itself does this.
		if _, err := tool.Accept(builtin.Definition().Schema, r.Parameters.Raw()); err != nil {
			return nil, err
		}
	}
	chain := []Link{
		{ItemID: found.ID, Space: found.Space, Path: found.Path},
		{ItemID: BuiltinExecutor, Space: item.System},
	}
	switch {
	case r.DryRun:
		plan := dryRun(found)
		plan.Plan.Executor, plan.Plan.Chain, plan.Plan.Parameters = BuiltinExecutor, chain, r.Parameters
		return plan, nil
	case m.async:
		if err := noSecrets(c, r.Parameters); err != nil {
			return nil, err
		}
		return a.Threads.StartTool(ctx, c, ToolRequest{ToolID: found.ID, Parameters: r.Parameters, RequestKey: r.RequestKey, Warnings: found.warnings})
	}
	args, err := c.Reveal(builtin.Definition(), r.Parameters.Raw())
	if err != nil {
		return nil, err
	}
	begin := a.Now()
	data, err := builtin.Call(ctx, c.Env, args)
	if err != nil {
		return nil, ToolFault(found.ID, err)
	}
	return &ToolResult{
		Success: true, Type: item.Tool, ItemID: found.ID, Space: found.Space, Data: data, Chain: chain,
		DurationMS: a.Now().Sub(begin).Milliseconds(), Warnings: found.warnings, paged: builtin.Definition().Paged,
	}, nil
}

// noSecrets refuses parameters with secrets for a run in the background, whose
// parameters are kept in a file until it ends.
func noSecrets(c Caller, params tool.Object) error {
	if c.Secrets == nil {
		return nil
	}
	if named := c.Secrets.Named(string(params.Raw())); len(named) > 0 {
		return tool.Faultf(tool.CodeUnsupported, "%s cannot be given to a run in the background, whose parameters are kept in a file", named[0]).
			WithHint("Leave async out.")
	}
	return nil
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

// builtin is the Go function of a tool item.
func (a *Actions) builtin(found *resolve.Found) (tool.Tool, error) {
	doc, err := found.Tool()
	if err != nil {
		return nil, err
	}
	if doc.ExecutorID != BuiltinExecutor {
		return nil, tool.Faultf(tool.CodeUnsupported, "the tool %s %s; this version runs built-in tools only", found.ID, needs(found, doc)).
			With("executor_id", doc.ExecutorID).With("path", found.Path).
			WithHint("Run it through rye/bash if that is allowed, or use a built-in tool.")
	}
	builtin, ok := a.Deps.Tools.Get(found.ID)
	if !ok {
		return nil, tool.Faultf(tool.CodeUnsupported, "%s says it is built in, but this version has no such tool", found.ID).
			With("path", found.Path)
	}
	return builtin, nil
}

// ToolFault is [Fault] for an error of a tool's call: what would be a failure of
// rye-mcp is the tool's own, unless it panicked.
func ToolFault(id string, err error) *tool.Fault {
	f := Fault(err)
	_, panicked := errors.AsType[*tool.PanicError](err)
	if f.Code != tool.CodeInternal || panicked {
		return f
	}
	return tool.Faultf(tool.CodeToolFailed, "%s failed: %w", id, err)
}
