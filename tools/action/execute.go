package action

import (
	"cmp"
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Execute executes an item. The result depends on what was asked for:
// *InlineDirective, *ToolResult, *KnowledgeResult, *DryRun, or what Threads
// returned.
func (a *Actions) Execute(ctx context.Context, c Caller, r ExecuteRequest) (any, error) {
	result, err := a.execute(ctx, c, r)
	if err != nil {
		return nil, Fault(err)
	}
	return result, nil
}

func (a *Actions) execute(ctx context.Context, c Caller, r ExecuteRequest) (any, error) {
	if err := checkProject(c, r.ProjectPath); err != nil {
		return nil, err
	}
	if r.ResumeThreadID != "" {
		return a.resume(ctx, c, r)
	}
	if r.ItemID == "" {
		return nil, tool.Faultf(tool.CodeBadArguments, `missing property "item_id" (id of a directive, tool or knowledge entry)`).
			WithHint("rye_search finds ids.")
	}
	if r.ItemType == "" || r.ItemType == string(item.Tool) {
		switch r.ItemID {
		case ThreadDirectiveID:
			return a.threadDirective(ctx, c, r)
		case OrchestratorID:
			return a.orchestrator(ctx, c, r)
		case DirectiveReturnID:
			return nil, tool.Faultf(tool.CodeUnsupported, "directive_return ends a thread whose directive declares outputs; there is none here").
				WithHint("Answer with your result as text.")
		}
	}
	if r.ItemType == string(item.Tool) && r.ItemID == ThreadSummaryID {
		if found, err := a.Resolver.Look(item.Tool, r.ItemID); err == nil && found == nil {
			return nil, tool.Faultf(tool.CodeUnsupported, "%s is a tool of hooks: it sums up the thread whose hook executes it", ThreadSummaryID).
				WithHint("Execute the directive of that id, with the text to sum up as transcript_content.")
		}
	}
	return a.executeItem(ctx, c, r, "")
}

// executeItem executes a found item. Parent is the parent of a fork, where a
// caller outside threads names one.
func (a *Actions) executeItem(ctx context.Context, c Caller, r ExecuteRequest, parent thread.ID) (any, error) {
	found, err := a.findIn(cmp.Or(a.Executes, a.Resolver).For(c.Env.ThreadID), c, "execute", r.ItemType, r.ItemID)
	if err != nil {
		return nil, a.operationMeant(r.ItemID, err)
	}
	m := modeOf(found.Kind, c, r)
	if err := checkMode(found.Kind, m, r); err != nil {
		return nil, err
	}
	if m.fork {
		return a.fork(ctx, c, r, found, parent)
	}
	decision, err := a.Trust.Check(trust.SubjectOf(found)) // of a fork, the orchestrator does
	if err != nil {
		return nil, err
	}
	use := usable{Found: found}
	if decision.Warning != "" {
		use.warnings = []string{decision.Warning}
	}
	switch found.Kind {
	case item.Tool:
		return a.executeTool(ctx, c, r, use, m)
	case item.Knowledge:
		return executeKnowledge(c, r, use)
	default:
		return a.inlineDirective(ctx, c, r, use)
	}
}

// usable is an item whose signature allows that it is executed.
type usable struct {
	*resolve.Found
	warnings []string
}

// DryRun is the answer to dry_run, except for forks.
type DryRun struct {
	Success  bool     `json:"success"`
	Plan     PlanBody `json:"plan"`
	Warnings []string `json:"warnings,omitempty"`
}

// PlanBody says what would be executed. It has passed every check.
type PlanBody struct {
	Type       item.Kind      `json:"type"`
	ItemID     string         `json:"item_id"`
	Space      item.Space     `json:"space"`
	Path       string         `json:"path"`
	Shadows    []Shadow       `json:"shadows,omitempty" jsonschema:"items of the same id that this one hides"`
	Inputs     map[string]any `json:"inputs,omitempty" jsonschema:"inputs of a directive, defaults filled in"`
	Executor   string         `json:"executor,omitempty" jsonschema:"what would run a tool"`
	Chain      []tool.Link    `json:"chain,omitempty" jsonschema:"from the tool to what runs it"`
	Parameters tool.Object    `json:"parameters,omitempty" jsonschema:"parameters of a tool"`
	Trace      []chain.Step   `json:"trace,omitempty" jsonschema:"what each item of the chain contributes"`
	Metadata   map[string]any `json:"metadata,omitempty" jsonschema:"of a knowledge entry"`
	// Of a directive:
	Capabilities []string `json:"capabilities,omitempty" jsonschema:"that it would have in a thread"`
	Inheritance
}

func dryRun(use usable) *DryRun {
	return &DryRun{Success: true, Warnings: use.warnings, Plan: PlanBody{
		Type: use.Kind, ItemID: use.ID, Space: use.Space, Path: use.Path, Shadows: shadows(use.Found),
	}}
}

// Shadow is an item that another one hides.
type Shadow struct {
	Space item.Space `json:"space"`
	Path  string     `json:"path"`
}

func shadows(found *resolve.Found) []Shadow {
	var list []Shadow
	for _, s := range found.Shadows {
		list = append(list, Shadow{Space: s.Space, Path: s.Path})
	}
	return list
}
