package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// composition is a directive together with what it extends, and why it extends
// that.
type composition struct {
	*prompt.Composition
	route    *thread.Route // nil: its own choice
	warnings []string
}

// composition puts a directive, which has passed the trust gate, together with
// what it extends by its own choice or that of a resolve_extends hook. Every hook
// of the thread to come has been found valid then. Model is what the caller asks
// for instead of the directive's choice, or empty; of is the thread that asks, or empty.
func (c *Call) composition(
	of thread.ID, found *resolve.Found, doc *item.DirectiveDoc, inputs map[string]any, model string,
) (*composition, error) {
	hooks, warnings, err := c.Hooks()
	if err != nil {
		return nil, hookFault(err)
	}
	extends, by, more, err := route(hooks, found, doc, inputs, model)
	if err != nil {
		return nil, hookFault(err)
	}
	composed, err := prompt.Composer{Resolver: c.Resolver.For(of), Trust: c.Trust}.Compose(found, extends)
	if err != nil {
		if by != nil {
			err = fmt.Errorf("hook %q (%s) lets %s extend %s: %w", item.Shown(by.Hook), by.Source, found.ID, extends, err)
		}
		return nil, prompt.Fault(err)
	}
	more = slices.Concat(more, composed.Warnings())
	if _, err := hooks.WithDirectives(composed.Hooks...); err != nil {
		return nil, hookFault(err)
	}
	return &composition{Composition: composed, route: by, warnings: slices.Concat(warnings, more)}, nil
}

// route is what a directive extends, and the hook that says so.
func route(
	hooks hook.Set, found *resolve.Found, doc *item.DirectiveDoc, inputs map[string]any, model string,
) (extends string, by *thread.Route, warnings []string, err error) {
	hooks, err = hooks.WithDirectives(hook.DirectiveHooks{Directive: found.ID, Path: found.Path, Hooks: doc.Hooks})
	if err != nil {
		return "", nil, nil, err
	}
	target, h, warnings := hooks.Suppress(doc.Context.Suppress...).ResolveExtends(routeData(found, doc, inputs, model))
	if h == nil {
		return doc.Extends, nil, warnings, nil
	}
	return target, &thread.Route{Hook: h.ID, Layer: int(h.Layer), Source: h.Source()}, warnings, nil
}

// routeData are the data of resolve_extends.
func routeData(found *resolve.Found, doc *item.DirectiveDoc, inputs map[string]any, model string) map[string]any {
	return map[string]any{
		"directive": found.ID, "has_extends": doc.Extends != "", "category": doc.Category, "inputs": inputs,
		"model": cmp.Or(model, doc.Model.ID, doc.Model.Tier),
	}
}

// hookFault tells what is wrong with the definition of a hook.
func hookFault(err error) error {
	if e, ok := errors.AsType[*hook.Error](err); ok {
		return tool.Faultf(tool.CodeInvalidConfig, "%w", err).With("path", e.Path).With("line", e.Line)
	}
	return err
}

// Compose makes a directive, which has passed the trust gate, ready for the
// caller's own model; of is the thread that calls, or empty. Values are its validated
// inputs. No provider is needed.
func (c *Planner) Compose(ctx context.Context, of thread.ID, found *resolve.Found, values map[string]any) (*action.Composed, error) {
	doc, err := found.Directive()
	if err != nil {
		return nil, err
	}
	by, err := c.In(c.Settings.Begin()).WorkingBy(ctx, of)
	if err != nil {
		return nil, err
	}
	composed, err := by.composition(of, found, doc, values, "")
	if err != nil {
		return nil, err
	}
	in, missing, err := c.promptInput(composed, found.ID, doc, values)
	if err != nil {
		return nil, err
	}
	return &action.Composed{
		Body:         prompt.Inline(in),
		Capabilities: composed.Permissions.Capabilities, Inheritance: composed.inheritance(),
		HasHooks: len(composed.Hooks) > 0, Warnings: append(composed.warnings, missing...),
	}, nil
}

// promptInput is a directive with its values filled in and the context around it.
func (c *Planner) promptInput(
	composed *composition, id string, doc *item.DirectiveDoc, values map[string]any,
) (in prompt.Input, missing []string, err error) {
	first, err := opening.Prepare(composed.Composition, doc, values, c.Env, prompt.Facts{
		Directive: id, ProjectPath: c.Project, Inputs: values, Capabilities: composed.Permissions.Capabilities,
	})
	return first.Input, first.Warnings, err
}

// PromptInput is a planned directive with its values filled in and the context around
// it.
func (c *Planner) PromptInput(p *Plan, id string) (in prompt.Input, missing []string, err error) {
	return c.promptInput(p.composed, id, p.Doc, p.Inputs)
}

// inheritance tells people and models what a directive is composed of.
func (c *composition) inheritance() action.Inheritance {
	in := action.Inheritance{Suppressed: c.Suppressed}
	if len(c.Chain) > 1 {
		for _, link := range c.Chain {
			in.ExtendsChain = append(in.ExtendsChain, tool.Link{ItemID: link.ID, Space: link.Space, Path: link.Path})
		}
	}
	if c.route != nil {
		in.ExtendsHook = fmt.Sprintf("%s (%s)", c.route.Hook, c.route.Source)
	}
	for _, ref := range c.Context {
		in.Context = append(in.Context, action.ContextItem{
			ItemID: ref.ID, Position: ref.Position, Directive: ref.Directive, Space: ref.Space, Path: ref.Path,
		})
	}
	if c.PermissionsFrom != c.Chain[0].ID {
		in.CapabilitiesFrom = c.PermissionsFrom
	}
	return in
}

// chain is what thread.json keeps of what the directive extends.
func (c *composition) chain() []thread.ChainLink {
	var chain []thread.ChainLink
	for _, link := range c.Chain[1:] {
		chain = append(chain, thread.ChainLink{Directive: link.ID, Hash: link.Hash})
	}
	return chain
}
