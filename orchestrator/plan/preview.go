package plan

import (
	"context"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
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

// Outline says what a start would do. The members for what it comes to stand before those that can be long.
type Outline struct {
	Directive string        `json:"directive"`
	Space     string        `json:"space"`
	Path      string        `json:"path"`
	Model     string        `json:"model"`
	WorstCost thread.Micros `json:"worst_case_cost" jsonschema:"US dollars; the spend limit, which no call may pass"`
	Limits    thread.Limits `json:"limits"`
	Workspace string        `json:"workspace,omitempty" jsonschema:"of its own"`
	// Retry is when the thread is tried again should it fail.
	Retry *thread.RetryPolicy `json:"retry,omitempty" jsonschema:"when it is tried again should it fail"`
	// FirstRequest is what each turn sends, and more with each.
	FirstRequest *opening.Cost `json:"first_request,omitempty" jsonschema:"tokens of the first request"`
	Warnings     []string      `json:"warnings,omitempty"`
	Shadows      []string      `json:"shadows,omitempty"`
	Tools        []string      `json:"tools" jsonschema:"ids of the tools it may execute"`
	Capabilities []string      `json:"capabilities" jsonschema:"declared or inherited, as far as every ancestor allows them"`
	Dropped      []string      `json:"capabilities_dropped,omitempty" jsonschema:"declared, but without effect"`
	// DroppedWhy has every reason of each: a thread that asks one ancestor for more need not find
	// out about the next by trying.
	DroppedWhy map[string]string `json:"capabilities_dropped_why,omitempty" jsonschema:"why, by capability"`
	action.Inheritance
	Inputs map[string]any `json:"inputs"`
}

// Preview says what a start would do, and changes nothing.
func (c *Planner) Preview(ctx context.Context, caller action.Caller, req action.StartRequest) (Preview, error) {
	now := c.In(c.Settings.Begin())
	p, err := now.Start(ctx, caller, req)
	if err != nil {
		return Preview{}, err
	}
	first, err := now.firstRequest(p)
	if err != nil {
		return Preview{}, threads.Fault(err)
	}
	tools, err := c.toolsOf(p)
	if err != nil {
		return Preview{}, threads.Fault(err)
	}
	body := Outline{
		Directive: p.Found.ID, Space: string(p.Found.Space), Path: p.Found.Path,
		Inputs: inputs.Shown(p.Doc, p.Inputs), Model: p.Choice.Ref(), Limits: p.Limits,
		Capabilities: p.Grant.Effective(), Dropped: p.Dropped, DroppedWhy: p.DroppedWhy, Tools: tools, WorstCost: p.Limits.Spend, FirstRequest: first, Warnings: p.Warnings,
		Workspace:   p.wantsWorkspace(),
		Retry:       p.retries(),
		Inheritance: p.composed.inheritance(),
	}
	for _, s := range p.Found.Shadows {
		body.Shadows = append(body.Shadows, s.Path)
	}
	return Preview{Success: true, Plan: body}, nil
}

// firstRequest says what the thread's first request costs, and warns of limits that do
// not pay for it.
func (c *Call) firstRequest(p *Plan) (*opening.Cost, error) {
	cost, err := c.FirstRequest(p)
	if cost == nil || err != nil {
		return nil, err
	}
	for _, short := range cost.Shortages(p.Limits, &p.Choice) {
		p.Warnings = append(p.Warnings, short.Message+"; "+short.Try)
	}
	return cost, nil
}

// FirstRequest is what the first request of a planned thread comes to; nil: nobody knows
// its tools.
func (c *Call) FirstRequest(p *Plan) (*opening.Cost, error) {
	if c.Palette == nil {
		return nil, nil //nolint:nilnil // nobody asks
	}
	resilience, _, err := c.Config.Resilience()
	if err != nil {
		return nil, err
	}
	offered, err := c.Palette(opening.Wanted{
		Grant: p.Grant, Outputs: p.Doc.Outputs, Room: resilience.ToolPreload.MaxTokens, Tokens: p.Limits.Tokens,
	})
	if err != nil {
		return nil, err
	}
	first, err := opening.Prepare(p.composed.Composition, p.Doc, p.Inputs, c.Env, c.facts(p))
	if err != nil {
		return nil, err
	}
	cost := opening.Estimate(first.Input, opening.Tools(offered), p.Choice.ToolUse)
	return &cost, nil
}

// facts are what the thread will know about itself when it starts.
func (c *Call) facts(p *Plan) prompt.Facts {
	return prompt.Facts{
		Directive: p.Found.ID, ProjectPath: c.Project, Inputs: p.Inputs, Capabilities: p.Grant.Own,
		Thread: &prompt.ThreadFacts{
			Model: p.Choice.Ref(), ParentID: p.Request.Parent, Depth: len(p.Grant.Ceiling), Limits: p.Limits,
		},
	}
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
