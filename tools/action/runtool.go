package action

import (
	"context"
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ToolResult is what a tool returned.
type ToolResult struct {
	Success    bool         `json:"success"`
	Type       item.Kind    `json:"type"`
	ItemID     string       `json:"item_id"`
	Space      item.Space   `json:"space"`
	Chain      []tool.Link  `json:"chain" jsonschema:"from the tool to what ran it"`
	DurationMS int64        `json:"duration_ms" jsonschema:"milliseconds the tool ran"`
	Warnings   []string     `json:"warnings,omitempty"`
	Trace      []chain.Step `json:"trace,omitempty" jsonschema:"what each item of the chain contributed"`
	Data       any          `json:"data" jsonschema:"the tool's own result"`

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
	found.warnings = append(found.warnings, t.Warnings...)
	call := executor.Call{Env: c.Env, Args: r.Parameters.Raw(), Secrets: c.Secrets}
	switch {
	case r.DryRun:
		return a.planTool(ctx, r, found, t, call)
	case m.async:
		return a.startTool(ctx, c, r, found, t, call)
	}
	plan := &chain.Plan{} // nothing, of a built-in tool
	call.Planned = func(p *chain.Plan) { plan = p }
	begin := a.Now()
	data, err := a.Executor.Run(ctx, t, call)
	var trace []chain.Step
	if r.Trace {
		trace = plan.Steps
	}
	if err != nil {
		return nil, traced(ToolFault(found.ID, err), trace)
	}
	found.warnings = append(found.warnings, newWarnings(found.warnings, plan.Warnings)...)
	return &ToolResult{
		Success: true, Type: item.Tool, ItemID: found.ID, Space: found.Space, Data: data, Chain: t.Chain,
		DurationMS: a.Now().Sub(begin).Milliseconds(), Warnings: found.warnings, Trace: trace, paged: t.Definition.Paged,
	}, nil
}

// traced adds to a failure what the elements of the chain contributed.
func traced(f *tool.Fault, trace []chain.Step) *tool.Fault {
	if trace != nil {
		f = f.With("trace", trace)
	}
	return f
}

// newWarnings are those that have not been given yet.
func newWarnings(given, more []string) []string {
	return slices.DeleteFunc(slices.Clone(more), func(w string) bool { return slices.Contains(given, w) })
}

// planTool says what running a tool would come to.
func (a *Actions) planTool(ctx context.Context, r ExecuteRequest, found usable, t *executor.Tool, call executor.Call) (any, error) {
	plan, err := a.Executor.Plan(ctx, t, call)
	if err != nil {
		return nil, err
	}
	d := dryRun(found)
	d.Plan.Chain, d.Plan.Parameters = t.Chain, r.Parameters
	if len(t.Chain) > 1 {
		d.Plan.Executor = t.Chain[1].ItemID
	}
	if plan != nil {
		d.Warnings = append(d.Warnings, newWarnings(d.Warnings, plan.Warnings)...)
		if r.Trace {
			d.Plan.Trace = plan.Steps
		}
	}
	return d, nil
}

// startTool starts a run in the background, whose parameters are checked first.
func (a *Actions) startTool(ctx context.Context, c Caller, r ExecuteRequest, found usable, t *executor.Tool, call executor.Call) (any, error) {
	if err := noSecrets(c, r.Parameters); err != nil {
		return nil, err
	}
	if _, err := a.Executor.Plan(ctx, t, call); err != nil {
		return nil, err
	}
	return a.Threads.StartTool(ctx, c, ToolRequest{ToolID: found.ID, Parameters: r.Parameters, RequestKey: r.RequestKey, Warnings: found.warnings})
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
