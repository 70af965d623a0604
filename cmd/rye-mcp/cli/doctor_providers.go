package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// settings reads the settings of threads, but for those that have a check of their own.
func (d *doctor) settings(context.Context) []finding {
	names := []string{
		config.AgentSettings, config.CoordinationSettings, config.ResilienceSettings, config.RiskSettings, config.ToolsSettings, config.NotifySettings,
		config.MirrorSettings,
	}
	var found []finding
	for _, name := range names {
		explained, err := d.config.Explain(name)
		found = append(found, settingsFindings("rye-mcp config show "+name, explained.Warnings, err)...)
	}
	_, warnings, err := d.config.ErrorRules()
	found = append(found, settingsFindings("rye-mcp validate --all", warnings, err)...)
	_, warnings, err = hook.Load(d.config, d.trust)
	found = append(found, settingsFindings("rye-mcp validate --all", warnings, err)...)
	found = append(found, d.leftOut()...)
	if len(found) == 0 {
		return []finding{okf("%s", strings.Join(append(names, config.ErrorSettings, config.HookSettings), ", "))}
	}
	return found
}

// settingsFindings is what the reading of some settings has said; look shows how they are.
func settingsFindings(look string, warnings []string, err error) (found []finding) {
	if refused, ok := errors.AsType[*trust.RefusedError](err); ok {
		found = append(found, failf(refused.Try(), "%v, and no thread starts", refused))
	} else if err != nil {
		found = append(found, failf("mend the file, then "+look, "%v", err))
	}
	for _, w := range warnings {
		found = append(found, warnf(look, "%s", w))
	}
	return found
}

// leftOut says how far the settings of the project count, and what of them does
// not.
func (d *doctor) leftOut() []finding {
	known, try := trust.ProjectOf(d.roots), acceptWith(d.sys)
	var found []finding
	switch {
	case known.Standing == trust.Home:
		found = append(found, okf("the project is your user space: its settings are your own, and there is no project layer"))
	case known.Standing == trust.Around:
		try = "USER_SPACE=DIR, a folder outside of the project"
		found = append(found, okf("your user space %s lies in the project, so nothing of the project's settings can be accepted", d.roots.User))
	case known.Fault != nil:
		found = append(found, warnf(try, "what you accepted of this project cannot be read, and does not count: %v", known.Fault))
	}
	for _, n := range d.config.LeftOut() {
		try := try
		if n.UserOnly {
			try = "put it into your user space, or leave it out"
		}
		found = append(found, warnf(try, "%s", n.Fact()))
	}
	return few(found)
}

// modelProviders says which providers can be used, and which threads get that
// name none.
func (d *doctor) modelProviders(ctx context.Context) []finding {
	names, err := d.config.ProviderNames()
	if err != nil {
		return []finding{failf("make the folder readable", "%v", err)}
	}
	found := []finding{d.defaultProvider(ctx)}
	for _, name := range names {
		p, warnings, err := d.config.Provider(name)
		for _, w := range warnings {
			found = append(found, warnf("rye-mcp config show providers/"+name, "%s", w))
		}
		switch refused, is := errors.AsType[*config.Error](err); {
		case is && refused.LeftOut:
			found = append(found, warnf(acceptWith(d.sys), "%s: cannot be used: %v", name, err))
			continue
		case err != nil:
			found = append(found, failf("mend the file, then rye-mcp config show providers/"+name, "%s: %v", name, err))
			continue
		}
		found = append(found, d.providerState(ctx, p))
		if p.Local {
			found = append(found, d.shortContexts(ctx, p)...)
		}
	}
	return found
}

// usefulContext is a context window, in tokens, in which a thread can work.
const usefulContext = 32_768

// shortContexts warns of models that Ollama has loaded with a shorter context than threads
// take them to have: of a request that is longer it cuts off the beginning.
func (d *doctor) shortContexts(ctx context.Context, p config.Provider) (found []finding) {
	loaded := d.providers.Loaded(ctx, p)
	ids := slices.Concat(slices.Collect(maps.Values(p.Tiers)), slices.Collect(maps.Keys(p.Models)))
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		choice, _, err := d.providers.Known(p.Name + "/" + id)
		_, window := limit.ContextUse(choice.Model, 0, 0)
		tokens := int64(loaded[id])
		if err != nil || tokens == 0 || tokens >= window {
			continue
		}
		try := fmt.Sprintf("models: {%q: {context_window: %d}} in ~/.ai/config/agent/providers/%s.yaml", id, max(tokens, usefulContext), p.Name)
		if tokens < usefulContext {
			try = fmt.Sprintf("start Ollama with OLLAMA_CONTEXT_LENGTH=%d, and set %s", usefulContext, try)
		}
		found = append(found, warnf(try, "%s/%s is loaded with a context of %d tokens, and threads take it to have %d: the beginning of longer requests is cut off",
			p.Name, id, tokens, window))
	}
	return found
}

func (d *doctor) defaultProvider(ctx context.Context) finding {
	choice, err := d.providers.Choose(ctx, provider.Want{})
	var none *provider.NoProviderError
	if errors.As(err, &none) {
		if theirs, can := d.workersChoice(ctx); can {
			return okf("threads that name no model use %s, which workers of the project can use", theirs.Ref())
		}
	}
	switch {
	case errors.As(err, &none):
		return failf("set the key of a provider; to see threads without one: rye-mcp demo", "%v", err)
	case err != nil:
		return failf("rye-mcp config show", "threads that name no model cannot run: %v", err)
	}
	return okf("threads that name no model use %s", choice.Ref())
}

// workersChoice is the model of threads that name none where workers run them, who can use
// its provider.
func (d *doctor) workersChoice(ctx context.Context) (choice provider.Choice, can bool) {
	p, err := assemble(ctx, d.sys, d.project, newLog(d.sys, io.Discard), plainStore)
	if err != nil {
		return choice, false // told by the check of threads
	}
	defer p.Close() //nolint:errcheck // it was only asked
	able, _ := p.control.Threads.Providers(ctx)
	choice, err = d.providers.Elsewhere(able).Choose(ctx, provider.Want{})
	return choice, err == nil && slices.Contains(able, choice.Provider)
}

// providerState is ok for a provider without its key: nobody has all of them.
func (d *doctor) providerState(ctx context.Context, p config.Provider) finding {
	switch {
	case p.API == config.APIScripted:
		return okf("%s: answers from a script, needs no key", p.Name)
	case d.providers.LacksKey(p.Name + "/any"):
		return okf("%s: not in use, %s is not set", p.Name, p.APIKeyEnv)
	case !p.Local:
		return d.keyState(ctx, p)
	case d.providers.Answers(ctx, p):
		return okf("%s: answers at %s", p.Name, maskAddress(d.providers.BaseURL(p)))
	default:
		return okf("%s: not in use, nothing answers at %s", p.Name, maskAddress(d.providers.BaseURL(p)))
	}
}

// keyState has the key of a provider given, as the start of a thread would.
func (d *doctor) keyState(ctx context.Context, p config.Provider) finding {
	err := d.providers.TryKey(ctx, p)
	var failed *provider.KeyError
	switch from := d.providers.KeySource(p); {
	case errors.As(err, &failed):
		return warnf(failed.Try(), "%s: cannot be used: %v", p.Name, err)
	case err != nil:
		return warnf("", "%s: %v", p.Name, err)
	case from == "":
		return okf("%s: can be used, it needs no key", p.Name)
	case from == p.APIKeyEnv:
		return okf("%s: can be used, %s is set", p.Name, from)
	default:
		return okf("%s: can be used, %s gives its key", p.Name, from)
	}
}

// models names the models of usable providers whose price is not known: a spend
// limit cannot be kept with them, so threads refuse to run.
func (d *doctor) models(ctx context.Context) []finding {
	names, err := d.config.ProviderNames()
	if err != nil {
		return []finding{failf("make the folder readable", "%v", err)}
	}
	var found []finding
	priced, old := 0, false
	for _, name := range names {
		p, _, err := d.config.Provider(name)
		if err != nil || d.providers.LacksKey(p.Name+"/any") {
			continue // told by the check of providers
		}
		for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
			choice, err := d.providers.Choose(ctx, provider.Want{Override: name + "/" + tier})
			switch {
			case err != nil:
				found = append(found, warnf("rye-mcp config show providers/"+name, "%s/%s: %v", name, tier, err))
			case choice.Unpriced():
				found = append(found, warnf(
					fmt.Sprintf("models: {%q: {input: …, output: …}} in .ai/config/agent/providers/%s.yaml, or allow_unpriced: true", choice.Model.ID, name),
					"the price of %s (tier %s) is not known, so threads with a spend limit do not run on it", choice.Ref(), tier))
			default:
				priced++
				old = old || d.providers.Stale(choice)
			}
		}
	}
	return append([]finding{d.priceState(priced, old)}, few(found)...)
}

// priceState says how many tiers have a price, and where and when that comes from.
func (d *doctor) priceState(priced int, old bool) finding {
	source, version, date, err := d.providers.Prices()
	switch {
	case err != nil:
		return failf("", "%v", err)
	case old:
		return warnf("update rye-mcp, or set prices in ~/.ai/config/agent/providers/NAME.yaml",
			"the prices of the catalogue are of %s, more than 180 days ago: a spend limit may let more through than it says", date)
	}
	return okf("%s of usable providers with a known price, of %s (%s %s)", counted(priced, "tier"), date, source, version)
}
