package plan

import (
	"context"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// Preview is the answer to a dry run of a fork.
type Preview struct {
	Success bool    `json:"success"`
	Plan    Outline `json:"plan"`
}

// Outline says what a start would do.
type Outline struct {
	Directive    string         `json:"directive"`
	Space        string         `json:"space"`
	Path         string         `json:"path"`
	Shadows      []string       `json:"shadows,omitempty"`
	Inputs       map[string]any `json:"inputs"`
	Model        string         `json:"model"`
	Limits       thread.Limits  `json:"limits"`
	Capabilities []string       `json:"capabilities" jsonschema:"declared or inherited, as far as every ancestor allows them"`
	Dropped      []string       `json:"capabilities_dropped,omitempty" jsonschema:"declared, but without effect"`
	// DroppedWhy has every reason of each: a thread that asks one ancestor for more need not find
	// out about the next by trying.
	DroppedWhy map[string]string `json:"capabilities_dropped_why,omitempty" jsonschema:"why, by capability"`
	Tools      []string          `json:"tools" jsonschema:"ids of the tools it may execute"`
	WorstCost  thread.Micros     `json:"worst_case_cost" jsonschema:"US dollars; the spend limit, which no call may pass"`
	action.Inheritance
	Warnings []string `json:"warnings,omitempty"`
}

// Preview says what a start would do, and changes nothing.
func (c *Planner) Preview(ctx context.Context, caller action.Caller, req action.StartRequest) (Preview, error) {
	p, err := c.In(c.Settings.Begin()).Start(ctx, caller, req)
	if err != nil {
		return Preview{}, err
	}
	tools, err := c.toolsOf(p)
	if err != nil {
		return Preview{}, threads.Fault(err)
	}
	body := Outline{
		Directive: p.Found.ID, Space: string(p.Found.Space), Path: p.Found.Path,
		Inputs: inputs.Shown(p.Doc, p.Inputs), Model: p.Choice.Ref(), Limits: p.Limits,
		Capabilities: p.Grant.Effective(), Dropped: p.Dropped, DroppedWhy: p.DroppedWhy, Tools: tools, WorstCost: p.Limits.Spend, Warnings: p.Warnings,
		Inheritance: p.composed.inheritance(),
	}
	for _, s := range p.Found.Shadows {
		body.Shadows = append(body.Shadows, s.Path)
	}
	return Preview{Success: true, Plan: body}, nil
}

// toolsOf lists the tools that the thread may execute, by id.
func (c *Planner) toolsOf(p *Plan) ([]string, error) {
	entries, err := c.Resolver.All(item.Tool)
	if err != nil {
		return nil, err
	}
	tools := []string{}
	for _, e := range entries {
		if p.Grant.Allows(permission.Required(permission.Execute, item.Tool, e.ID)) && !slices.Contains(tools, e.ID) {
			tools = append(tools, e.ID)
		}
	}
	return tools, nil
}
