package action

import (
	"context"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Inline is a directive that is ready for the caller's own model.
type Inline struct {
	*Composed
	Found    *resolve.Found
	Doc      *item.DirectiveDoc
	Values   map[string]any // its validated inputs
	Warnings []string       // those of Composed, too
}

// Inline makes a directive ready as an inline call does, and starts nothing. Given is
// asked for the inputs when it is known that the directive may be used. The error is a
// *tool.Fault.
func (a *Actions) Inline(ctx context.Context, c Caller, id string, given func(*item.DirectiveDoc) (map[string]any, error)) (*Inline, error) {
	found, err := a.find(c, "execute", string(item.Directive), id)
	if err != nil {
		return nil, Fault(err)
	}
	decision, err := a.Trust.Check(trust.SubjectOf(found))
	if err != nil {
		return nil, Fault(err)
	}
	use := usable{Found: found}
	if decision.Warning != "" {
		use.warnings = []string{decision.Warning}
	}
	inline, err := a.inline(ctx, c, use, given)
	if err != nil {
		return nil, Fault(err)
	}
	return inline, nil
}

// inline composes a directive, which may be used.
func (a *Actions) inline(ctx context.Context, c Caller, found usable, given func(*item.DirectiveDoc) (map[string]any, error)) (*Inline, error) {
	doc, err := found.Directive()
	if err != nil {
		return nil, err
	}
	// Nothing but its inputs is held to here.
	unknown, err := doc.CheckNames(found.ID, found.Path, item.PartInputs)
	if err != nil {
		return nil, err
	}
	raw, err := given(doc)
	if err != nil {
		return nil, err
	}
	values, _, err := inputs.Validate(doc, raw)
	if err != nil {
		return nil, err
	}
	composed, err := a.Compose(ctx, c.Env.ThreadID, found.Found, values)
	if err != nil {
		return nil, err
	}
	if tool.FitsJSON(composed.Body, maxText) < len(composed.Body) {
		return nil, tool.Faultf(tool.CodeUnsupported, "with its inputs and context filled in, the text of %s has %d bytes, more than one answer can carry",
			found.ID, len(composed.Body)).
			WithHint(`Use thread "fork", which has no such bound, or read it a page at a time with rye_fetch.`)
	}
	return &Inline{
		Composed: composed, Found: found.Found, Doc: doc, Values: values,
		Warnings: slices.Concat(found.warnings, unknown, composed.Warnings),
	}, nil
}
