package action

import (
	"context"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// InlineDirective is a directive for the caller's own model.
type InlineDirective struct {
	Success        bool       `json:"success"`
	Type           item.Kind  `json:"type"`
	ItemID         string     `json:"item_id"`
	Space          item.Space `json:"space"`
	YourDirections string     `json:"your_directions" jsonschema:"what to do with the body"`
	Body           string     `json:"body" jsonschema:"the directive's text with its inputs filled in"`
	Warnings       []string   `json:"warnings,omitempty"`
}

func (a *Actions) inlineDirective(r ExecuteRequest, found usable) (any, error) {
	doc, err := found.Directive()
	if err != nil {
		return nil, err
	}
	given, err := r.Parameters.Map()
	if err != nil {
		return nil, badArgument("parameters", err)
	}
	values, err := inputs.Validate(doc, given)
	if err != nil {
		return nil, err
	}
	if r.DryRun {
		plan := dryRun(found)
		plan.Plan.Inputs = values
		return plan, nil
	}
	body := inputs.Interpolate(doc.Body, values, a.Env)
	if fits(body, maxText) < len(body) {
		return nil, tool.Faultf(tool.CodeUnsupported, "with its inputs filled in, the text of %s has %d bytes, more than one answer can carry", found.ID, len(body)).
			WithHint(`Use thread "fork", which has no such bound, or read it a page at a time with rye_fetch.`)
	}
	return &InlineDirective{
		Success: true, Type: item.Directive, ItemID: found.ID, Space: found.Space,
		YourDirections: directions(doc), Body: body, Warnings: found.warnings,
	}, nil
}

// directions tell the caller's model that the work is now its own.
func directions(doc *item.DirectiveDoc) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The body is the text of the directive %s. Nothing has been started: carry it out yourself now, step by step, with the tools you have.", doc.Name)
	if len(doc.Outputs) > 0 {
		names := make([]string, len(doc.Outputs))
		for i, o := range doc.Outputs {
			names[i] = o.Name
		}
		fmt.Fprintf(&b, " When you are done, report %s.", strings.Join(names, ", "))
	}
	return b.String()
}

// fork starts a thread, or says what starting it would do.
func (a *Actions) fork(ctx context.Context, c Caller, r ExecuteRequest, found *resolve.Found, parent thread.ID) (any, error) {
	given, err := r.Parameters.Map()
	if err != nil {
		return nil, badArgument("parameters", err)
	}
	start := StartRequest{
		Directive: found.ID, Inputs: given, Async: r.Async, Model: r.Model, LimitOverrides: r.LimitOverrides,
		WaitSeconds: r.WaitSeconds, RequestKey: r.RequestKey, Parent: parent,
	}
	if r.DryRun {
		return a.Threads.Plan(ctx, c, start)
	}
	return a.Threads.Start(ctx, c, start)
}
