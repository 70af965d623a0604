package validate

import (
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
)

// checkCost finds limits that do not pay for the first request, and notes what that
// costs. Without a model, money and context window are not looked at.
func (d *directive) checkCost(l *list, chosen *provider.Choice) {
	composed, err := d.composer.Compose(d.found, d.doc.Extends)
	if err != nil {
		return // told by other checks
	}
	limits, err := limit.Resolve(d.limits, d.doc.Limits, nil, nil)
	if err != nil {
		return // the settings have no limits: they are reported themselves
	}
	grant := permission.Grant{Own: d.permissions.Capabilities}
	offered, err := d.Palette(opening.Wanted{Grant: grant, Outputs: d.doc.Outputs, Room: d.preload, Tokens: limits.Tokens})
	if err != nil {
		return // the tools cannot be listed: that is for the doctor to say
	}
	facts := prompt.Facts{
		Directive: d.found.ID, ProjectPath: d.Resolver.Roots().Project, Inputs: d.defaults(), Capabilities: grant.Own,
		Thread: &prompt.ThreadFacts{Limits: limits},
	}
	toolUse := ""
	if chosen != nil {
		facts.Thread.Model, toolUse = chosen.Ref(), chosen.ToolUse
	}
	first, err := opening.Prepare(composed, d.doc, facts.Inputs, nil, facts)
	if err != nil {
		return
	}
	cost := opening.Estimate(first.Input, opening.Tools(offered), toolUse)
	l.first = append(l.first, Request{Item: d.found.ID, Path: d.found.Path, Cost: cost})
	line := d.line("metadata/limits")
	for _, short := range cost.Shortages(limits, chosen) {
		switch short.Code {
		case limit.TokensExceeded:
			l.warnf(CodeLimitTokens, line, short.Try, "%s", short.Message)
		case limit.SpendExceeded:
			l.errorf(CodeLimitSpend, line, short.Try, "%s", short.Message)
		default:
			l.errorf(CodeLimitWindow, d.line("metadata/model", "metadata/model_class"), short.Try, "%s", short.Message)
		}
	}
}

// defaults are the inputs that have a value when none is given.
func (d *directive) defaults() map[string]any {
	values := map[string]any{}
	for _, in := range d.doc.Inputs {
		if in.Default != nil {
			values[in.Name] = in.Default
		}
	}
	return values
}
