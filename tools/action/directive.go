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
	Warnings       []string   `json:"warnings,omitempty"`
	Body           string     `json:"body" jsonschema:"the directive's text with its inputs filled in, between the context that it and what it extends ask for"`
}

// Paged is true: a directive of which a part is left out cannot be carried out.
func (*InlineDirective) Paged() bool { return true }

// Composed is a directive together with what it extends, as one text.
type Composed struct {
	Body         string
	Capabilities []string // that it would have in a thread
	HasHooks     bool
	Warnings     []string
	Inheritance
}

// Inheritance says what a directive is composed of; all of it is empty for one
// that extends nothing and asks for no context.
type Inheritance struct {
	ExtendsChain     []tool.Link   `json:"extends_chain,omitempty" jsonschema:"from the directive to the root of what it extends"`
	ExtendsHook      string        `json:"extends_hook,omitempty" jsonschema:"id and place of the hook that chose what it extends"`
	Context          []ContextItem `json:"context,omitempty" jsonschema:"knowledge in its prompt, in order"`
	Suppressed       []string      `json:"suppressed,omitempty" jsonschema:"items and hooks that one of the chain keeps out"`
	CapabilitiesFrom string        `json:"capabilities_from,omitempty" jsonschema:"the directive whose capabilities it inherits"`
}

// ContextItem is a knowledge item in the prompt of a directive.
type ContextItem struct {
	ItemID    string     `json:"item_id"`
	Position  string     `json:"position" jsonschema:"system, before or after"`
	Directive string     `json:"directive" jsonschema:"the one of the chain that asks for it"`
	Space     item.Space `json:"space"`
	Path      string     `json:"path"`
}

func (a *Actions) inlineDirective(ctx context.Context, c Caller, r ExecuteRequest, found usable) (any, error) {
	inline, err := a.inline(ctx, c, found, func(*item.DirectiveDoc) (map[string]any, error) {
		given, err := r.Parameters.Map()
		if err != nil {
			return nil, badArgument("parameters", err)
		}
		return given, nil
	})
	if err != nil {
		return nil, err
	}
	if r.DryRun {
		found.warnings = inline.Warnings
		plan := dryRun(found)
		plan.Plan.Inputs, plan.Plan.Capabilities, plan.Plan.Inheritance = inputs.Shown(inline.Doc, inline.Values), inline.Capabilities, inline.Inheritance
		return plan, nil
	}
	return &InlineDirective{
		Success: true, Type: item.Directive, ItemID: found.ID, Space: found.Space,
		YourDirections: directions(inline.Doc, inline.Composed, inputs.Secrets(inline.Doc, inline.Values)), Body: inline.Body, Warnings: inline.Warnings,
	}, nil
}

// directions tell the caller's model that the work is now its own, and what of
// the directive holds in a thread only.
func directions(doc *item.DirectiveDoc, c *Composed, secrets []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The body is the text of the directive %s", doc.Name)
	if len(c.Context) > 0 {
		b.WriteString(" and the context it asks for")
	}
	b.WriteString(". Nothing has been started: carry it out yourself now, step by step, with the tools you have.")
	if len(doc.Outputs) > 0 {
		b.WriteString(" When you are done, report these outputs in your answer; there is no tool to return them with: ")
		b.WriteString(OutputList(doc.Outputs) + ".")
	}
	for _, name := range secrets {
		fmt.Fprintf(&b, " %s stands for the value of %s that you gave, which is not repeated here; in a thread no model would see it.",
			inputs.Placeholder(name), name)
	}
	if len(c.Capabilities) > 0 {
		fmt.Fprintf(&b, " In a thread of its own it could do no more than %s; nothing but you keeps to that here.",
			strings.Join(c.Capabilities, ", "))
	}
	b.WriteString(" Its limits do not hold here")
	if c.HasHooks {
		b.WriteString(" and its hooks do not run")
	}
	b.WriteString(`: for that it needs a thread (thread "fork").`)
	return b.String()
}

// OutputList tells a model in one line what a directive is to return.
func OutputList(outputs []item.Output) string {
	list := make([]string, len(outputs))
	for i, o := range outputs {
		list[i] = o.Name
		var notes []string
		if o.Type != "" {
			notes = append(notes, o.Type)
		}
		if !o.Required {
			notes = append(notes, "optional")
		}
		if len(notes) > 0 {
			list[i] += " (" + strings.Join(notes, ", ") + ")"
		}
		if o.Description != "" {
			list[i] += ": " + strings.Join(strings.Fields(o.Description), " ")
		}
	}
	return strings.Join(list, "; ")
}

// fork starts a thread, or says what starting it would do.
func (a *Actions) fork(ctx context.Context, c Caller, r ExecuteRequest, found *resolve.Found, parent thread.ID) (any, error) {
	given, err := r.Parameters.Map()
	if err != nil {
		return nil, badArgument("parameters", err)
	}
	start := StartRequest{
		Directive: found.ID, Inputs: given, Async: r.Async, Model: r.Model, Limits: r.Limits,
		WaitSeconds: r.WaitSeconds, RequestKey: r.RequestKey, Parent: parent,
		Workspace: r.Workspace,
	}
	if found.Detached != nil && r.WaitSeconds == nil { // those alone say where they run
		doc, err := found.Directive()
		if err != nil {
			return nil, err
		}
		start.Async = start.Async || doc.Background
	}
	if c.Detached {
		start.Async, start.WaitSeconds = true, nil
	}
	if r.DryRun {
		return a.Threads.Plan(ctx, c, start)
	}
	return a.Threads.Start(ctx, c, start)
}
