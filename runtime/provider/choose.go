package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// named follows an override: "provider/model", a tier or alias of the default
// provider, or a model id.
func (r *Registry) named(ctx context.Context, name string) (Choice, error) {
	p, model, err := r.split(name)
	if err != nil {
		return Choice{}, err
	}
	if p != nil && r.canBeNamed(*p) {
		return r.at(*p, model)
	}
	base, err := r.defaultProvider(ctx)
	if err != nil {
		if p != nil { // the provider that was named, rather than all there are
			return Choice{}, r.missing(*p)
		}
		return Choice{}, err
	}
	if id, ok := tierModel(base, name); ok {
		return r.choice(base, id)
	}
	choice, err := r.byBareID(base, name)
	if p != nil && unavailable(err) {
		return Choice{}, r.missing(*p)
	}
	return choice, err
}

// Known is a model by "provider/model", whether or not its provider can be used now; false
// where the settings have no such provider.
func (r *Registry) Known(name string) (Choice, bool, error) {
	p, model, err := r.split(name)
	if err != nil || p == nil {
		return Choice{}, false, err
	}
	choice, err := r.at(*p, model)
	return choice, err == nil, err
}

// byID follows the model id of a directive: "provider/model" or an id alone.
func (r *Registry) byID(ctx context.Context, id string) (Choice, error) {
	p, model, err := r.split(id)
	if err != nil {
		return Choice{}, err
	}
	if p != nil && r.canBeNamed(*p) {
		return r.at(*p, model)
	}
	base, err := r.defaultProvider(ctx)
	if err != nil {
		return Choice{}, err
	}
	choice, err := r.byBareID(base, id)
	if p != nil && unavailable(err) {
		return Choice{}, r.missing(*p)
	}
	return choice, err
}

// split takes "provider/model" apart; the provider is nil when the part before
// the slash names none, as in the ids of a gateway.
func (r *Registry) split(name string) (*config.Provider, string, error) {
	before, model, ok := strings.Cut(name, "/")
	if !ok || model == "" {
		return nil, name, nil
	}
	p, _, err := r.config.Provider(before)
	var unknown *config.NotFoundError
	if errors.As(err, &unknown) {
		return nil, name, nil
	}
	if err != nil {
		return nil, name, fmt.Errorf("model provider %s: %w", before, err)
	}
	return &p, model, nil
}

// at is a model of a named provider: one of its tiers, or an id, which need not
// be in the catalogue.
func (r *Registry) at(p config.Provider, model string) (Choice, error) {
	if id, ok := tierModel(p, model); ok {
		model = id
	}
	return r.choice(p, model)
}

// byBareID finds the provider of a model id: the default one if it has the
// model, else the first other that has it and can be used.
func (r *Registry) byBareID(base config.Provider, id string) (Choice, error) {
	known, err := r.has(base, id)
	if err != nil {
		return Choice{}, err
	}
	if known {
		return r.choice(base, id)
	}
	others, err := r.others(base.Name)
	if err != nil {
		return Choice{}, err
	}
	for _, can := range []func(config.Provider) bool{r.canServe, r.canBeNamed} {
		for _, p := range others {
			known, err := r.has(p, id)
			if err != nil {
				return Choice{}, err
			}
			if known && can(p) {
				return r.choice(p, id)
			}
		}
	}
	return Choice{}, unknownModel(id, base)
}

// has reports whether a provider is known to offer a model.
func (r *Registry) has(p config.Provider, id string) (bool, error) {
	if _, ok := p.Models[id]; ok {
		return true, nil
	}
	for _, model := range p.Tiers {
		if model == id {
			return true, nil
		}
	}
	if p.Local || p.API == config.APIScripted {
		return false, nil
	}
	known, err := r.catalog()
	if err != nil {
		return false, err
	}
	return known.Offers(p.Name, id), nil
}

// others are the readable providers except one, those of the configured order
// first.
func (r *Registry) others(except string) ([]config.Provider, error) {
	agent, _, err := r.config.Agent()
	if err != nil {
		return nil, err
	}
	names, err := r.config.ProviderNames()
	if err != nil {
		return nil, err
	}
	var out []config.Provider
	seen := []string{except}
	for _, name := range slices.Concat(agent.Provider.Order, names) {
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		if p, _, err := r.config.Provider(name); err == nil { // a broken file is reported by whoever names it
			out = append(out, p)
		}
	}
	return out, nil
}

// usable reports whether nothing is missing to talk to a provider. Whether it
// answers, and whether a command gives the key, is another matter.
func (r *Registry) usable(p config.Provider) bool {
	return p.APIKeyEnv == "" || r.inVariable(p) || givenByCommand(p)
}

// canBeNamed reports whether a provider that somebody has named is taken: where others run
// the thread, it waits for one of them that has the key.
func (r *Registry) canBeNamed(p config.Provider) bool { return r.elsewhere || r.usable(p) }

// canServe reports whether whoever runs the thread lacks nothing to talk to a provider.
func (r *Registry) canServe(p config.Provider) bool {
	if r.elsewhere {
		return slices.Contains(r.able, p.Name)
	}
	return r.usable(p)
}

// isThere reports whether a provider that runs on the machine of the thread answers. Those of
// others were asked there.
func (r *Registry) isThere(ctx context.Context, p config.Provider) bool {
	return r.elsewhere || !p.Local || r.Answers(ctx, p)
}

// LacksKey reports that the provider of a reference, "provider/model", needs a
// key that this process does not have. It looks at settings and environment
// only and so never waits.
func (r *Registry) LacksKey(ref string) bool {
	p, _, err := r.split(ref)
	return err == nil && p != nil && !r.usable(*p)
}

// CanServe reports that this process lacks nothing to talk to the provider of a reference,
// and has settings of it. Like LacksKey it never waits.
func (r *Registry) CanServe(ref string) bool {
	p, _, err := r.split(ref)
	return err == nil && p != nil && r.usable(*p)
}

// Ready says why the provider of a reference cannot be asked now: its key is missing or
// cannot be had, or it is one on this machine and does not answer. It waits for that one for
// 200 ms at most, and for a command that gives a key.
func (r *Registry) Ready(ctx context.Context, ref string) error {
	p, _, err := r.split(ref)
	switch {
	case err != nil:
		return err
	case p == nil: // the settings have it no more
		_, err := r.named(ctx, ref)
		return err
	case !r.usable(*p) || !r.isThere(ctx, *p):
		return r.missing(*p)
	}
	_, err = r.KeyGiven(ctx, *p)
	return err
}

// Usable are the names of the providers that lack nothing to be talked to, sorted. Those on
// this machine answer; it waits for each of them for 200 ms at most.
func (r *Registry) Usable(ctx context.Context) (names []string) {
	all, err := r.config.ProviderNames()
	if err != nil {
		return nil // the first use of one reports it
	}
	for _, name := range all {
		if p, _, err := r.config.Provider(name); err == nil && r.usable(p) && r.isThere(ctx, p) {
			names = append(names, name)
		}
	}
	return names
}

// defaultProvider is the provider of whoever names none.
func (r *Registry) defaultProvider(ctx context.Context) (config.Provider, error) {
	agent, _, err := r.config.Agent()
	if err != nil {
		return config.Provider{}, err
	}
	if name := agent.Provider.Default; name != "" {
		p, _, err := r.config.Provider(name)
		if err != nil {
			return p, fmt.Errorf("provider.default of agent.yaml: %w", err)
		}
		if !r.canBeNamed(p) {
			return p, r.missing(p)
		}
		return p, nil
	}
	none := &NoProviderError{}
	for _, name := range agent.Provider.Order {
		p, _, err := r.config.Provider(name)
		if err != nil {
			return p, fmt.Errorf("provider.order of agent.yaml: %w", err)
		}
		if r.canServe(p) && r.isThere(ctx, p) {
			return p, nil
		}
		none.add(p)
	}
	local, err := r.localProvider(ctx, agent.Provider.Order, none)
	if err != nil && r.elsewhere && len(agent.Provider.Order) > 0 {
		return r.inOrder(agent.Provider.Order)
	}
	return local, err
}

// inOrder is the default provider of a thread that none of those who run threads can run
// now: the first of the order that can be used here, else the first.
func (r *Registry) inOrder(order []string) (first config.Provider, err error) {
	for i, name := range order {
		p, _, err := r.config.Provider(name)
		if err != nil {
			return p, fmt.Errorf("provider.order of agent.yaml: %w", err)
		}
		if r.usable(p) {
			return p, nil
		}
		if i == 0 {
			first = p
		}
	}
	return first, nil
}

// localProvider is the first provider on this machine that answers.
func (r *Registry) localProvider(ctx context.Context, tried []string, none *NoProviderError) (config.Provider, error) {
	names, err := r.config.ProviderNames()
	if err != nil {
		return config.Provider{}, err
	}
	for _, name := range names {
		if slices.Contains(tried, name) {
			continue
		}
		p, _, err := r.config.Provider(name)
		if err != nil || !p.Local {
			continue // a broken file is reported by whoever names it
		}
		if r.canServe(p) && r.isThere(ctx, p) {
			return p, nil
		}
		none.add(p)
	}
	return config.Provider{}, none
}

// tierModel is the model of a tier or of an alias for one.
func tierModel(p config.Provider, name string) (string, bool) {
	if tier, ok := p.Aliases[name]; ok {
		name = tier
	}
	id, ok := p.Tiers[name]
	return id, ok
}

// missing is the error for a provider without its key.
func (r *Registry) missing(p config.Provider) error {
	e := &NoProviderError{Provider: p.Name}
	e.add(p)
	return e
}
