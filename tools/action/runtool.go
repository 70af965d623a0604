package action

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ToolResult is what a tool returned.
type ToolResult struct {
	Success    bool        `json:"success"`
	Type       item.Kind   `json:"type"`
	ItemID     string      `json:"item_id"`
	Space      item.Space  `json:"space"`
	Chain      []tool.Link `json:"chain" jsonschema:"from the tool to what ran it"`
	DurationMS int64       `json:"duration_ms" jsonschema:"milliseconds the tool ran"`
	Warnings   []string    `json:"warnings,omitempty"`
	Data       any         `json:"data" jsonschema:"the tool's own result"`

	paged bool
}

// Attachments are those of the tool's own result.
func (r *ToolResult) Attachments() []tool.Attachment { return tool.AttachmentsOf(r.Data) }

// Paged reports whether the tool pages by itself.
func (r *ToolResult) Paged() bool { return r.paged || tool.IsPage(r.Data) }

func (a *Actions) executeTool(ctx context.Context, c Caller, r ExecuteRequest, found usable, m mode) (any, error) {
	t, err := a.Executor.Of(found.Found)
	if err != nil {
		return nil, err
	}
	if r.DryRun || m.async {
		// Otherwise the tool itself does this.
		if _, err := tool.Accept(t.Definition.Schema, r.Parameters.Raw()); err != nil {
			return nil, err
		}
	}
	switch {
	case r.DryRun:
		plan := dryRun(found)
		plan.Plan.Executor, plan.Plan.Chain, plan.Plan.Parameters = t.Chain[1].ItemID, t.Chain, r.Parameters
		return plan, nil
	case m.async:
		if err := noSecrets(c, r.Parameters); err != nil {
			return nil, err
		}
		return a.Threads.StartTool(ctx, c, ToolRequest{ToolID: found.ID, Parameters: r.Parameters, RequestKey: r.RequestKey, Warnings: found.warnings})
	}
	begin := a.Now()
	data, err := a.Executor.Run(ctx, t, executor.Call{Env: c.Env, Args: r.Parameters.Raw(), Secrets: c.Secrets})
	if err != nil {
		return nil, ToolFault(found.ID, err)
	}
	return &ToolResult{
		Success: true, Type: item.Tool, ItemID: found.ID, Space: found.Space, Data: data, Chain: t.Chain,
		DurationMS: a.Now().Sub(begin).Milliseconds(), Warnings: found.warnings, paged: t.Definition.Paged,
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
