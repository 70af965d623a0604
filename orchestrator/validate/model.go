package validate

import (
	"context"
	"errors"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// checkLimits finds limits under which no turn can be taken.
func checkLimits(l *list, d *directive) {
	for _, name := range []string{"turns", "tokens", "duration_seconds"} {
		if value, set := d.doc.Limits[name]; set && value == 0 {
			l.errorf(CodeLimitZero, d.line("metadata/limits"), "give it a value, or leave it out",
				"with %s=%v a thread ends before its first turn", name, value)
		}
	}
}

// checkModel finds models that cannot be had or paid. Where no provider can be
// used at all, that is for the doctor to say.
func checkModel(ctx context.Context, l *list, d *directive) {
	m := d.doc.Model
	line := d.line("metadata/model", "metadata/model_class")
	want := provider.Want{Provider: m.Provider, Tier: m.Tier, ID: m.ID, Fallback: m.Fallback}
	chosen, err := d.choose(ctx, want)
	none, unusable := errors.AsType[*provider.NoProviderError](err)
	asked := unusable && none.Provider != "" && (none.Provider == m.Provider || strings.HasPrefix(m.ID, none.Provider+"/"))
	switch {
	case unusable && !asked:
		d.checkCost(l, nil)
		return
	case err != nil:
		l.errorf(CodeModelUnknown, line, "", "%v", err)
		return
	}
	for _, warning := range chosen.Warnings {
		l.warnf(CodeModelReplaced, line, "", "%s", warning)
	}
	if m.Fallback != "" {
		if _, err := d.choose(ctx, provider.Want{Override: m.Fallback}); err != nil {
			l.warnf(CodeModelFallback, line, "", "the fallback model %s cannot be used: %v", m.Fallback, err)
		}
	}
	if chosen.Unpriced() {
		l.errorf(CodeModelUnpriced, line, "choose a model of the catalogue, or set prices in config/agent/providers/"+chosen.Provider+".yaml",
			"the price of model %s is not known, so the spend limit cannot be kept", chosen.Ref())
		return
	}
	d.checkCost(l, &chosen)
}

// checkContinuation looks for the prompt of a successor.
func checkContinuation(l *list, d *directive) {
	id := d.doc.ContinuationDirective
	if id == "" {
		return
	}
	line := d.line("metadata/continuation_directive")
	found, problem, try := d.forHandoff(id)
	if problem != "" {
		l.errorf(CodeContinuation, line, try, "<continuation_directive>: %s", problem)
		return
	}
	d.inherited(l, line, found)
}

// forHandoff finds a directive that only a handoff needs, or says why it cannot be
// used and what to try.
func (w *world) forHandoff(id string) (found *resolve.Found, problem, try string) {
	found, err := w.Resolver.Find(item.Directive, id)
	if err != nil {
		problem, try = missing(err)
		return nil, problem, try
	}
	if _, err := found.Directive(); err != nil {
		return nil, err.Error(), ""
	}
	return found, "", ""
}
