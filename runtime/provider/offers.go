package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Offer is a model that threads can be given, or why they cannot.
type Offer struct {
	Choice
	Tiers  []string // that mean it, sorted
	Wire   string   // the protocol it is asked over
	WhyNot string   // empty: it can be used
	Try    string   // what to do about it
}

// Offers are the models of a provider: those its file names, and with all those of the
// catalogue too. A provider whose file cannot be used is an error.
func (r *Registry) Offers(ctx context.Context, name string, all bool) ([]Offer, error) {
	p, _, err := r.config.Provider(name)
	if err != nil {
		return nil, err
	}
	whyNot, try := r.unusable(ctx, p)
	var offers []Offer
	for _, id := range r.namesOf(p, all) {
		choice, err := r.choice(p, id)
		if err != nil {
			return nil, err
		}
		o := Offer{Choice: choice, Tiers: tiersOf(p, id), Wire: r.spoken(p, id), WhyNot: whyNot, Try: try}
		if whyNot == "" && choice.Unpriced() {
			o.WhyNot = "its price is not known, so no spend limit can be kept"
			o.Try = fmt.Sprintf("models: {%q: {input: …, output: …}} in ~/.ai/config/agent/providers/%s.yaml, or allow_unpriced: true", id, p.Name)
		}
		offers = append(offers, o)
	}
	return offers, nil
}

// unusable says why a provider cannot be used, and what to do about it; empty when it
// can be. No command is run for it.
func (r *Registry) unusable(ctx context.Context, p config.Provider) (why, try string) {
	switch {
	case !r.usable(p):
		return "no key: " + p.APIKeyEnv + " is not set",
			fmt.Sprintf("set %s, or name api_key_keychain or api_key_command in ~/.ai/config/agent/providers/%s.yaml", p.APIKeyEnv, p.Name)
	case p.Local && !r.Answers(ctx, p):
		return "nothing answers where it is expected", "start " + p.Name
	}
	return "", ""
}

// KeySource says where the key of a provider comes from, for a person; empty when it
// needs none or has none.
func (r *Registry) KeySource(p config.Provider) string {
	switch {
	case r.inVariable(p):
		return p.APIKeyEnv
	case p.APIKeyKeychain != "":
		return "the keychain"
	case len(p.APIKeyCommand) > 0:
		return "a command"
	}
	return ""
}

// TryKey asks for the key of a provider, as the start of a thread does.
func (r *Registry) TryKey(ctx context.Context, p config.Provider) error {
	_, err := r.Key(ctx, p)
	return err
}

// namesOf are the ids of models: those of tiers in the order of the tiers' names, then
// the others.
func (r *Registry) namesOf(p config.Provider, all bool) []string {
	var ids []string
	for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
		ids = append(ids, p.Tiers[tier])
	}
	ids = append(ids, slices.Sorted(maps.Keys(p.Models))...)
	if all && !p.Local && p.API != config.APIScripted {
		if known, err := r.catalog(); err == nil {
			ids = append(ids, known.Models(p.Name)...)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(ids, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

func tiersOf(p config.Provider, id string) []string {
	var tiers []string
	for tier, model := range p.Tiers {
		if model == id {
			tiers = append(tiers, tier)
		}
	}
	slices.Sort(tiers)
	return tiers
}

// spoken is the protocol that a model is asked over.
func (r *Registry) spoken(p config.Provider, id string) string {
	if p.API == config.APIOpenAI {
		return wireOf(p, r.BaseURL(p), id)
	}
	return "messages"
}

// Names are the providers that there are files of, sorted.
func (r *Registry) Names() ([]string, error) { return r.config.ProviderNames() }

// Prices says where the prices of the catalogue come from.
func (r *Registry) Prices() (source, version, date string, err error) {
	known, err := r.catalog()
	if err != nil {
		return "", "", "", err
	}
	source, version, date = known.Info()
	return strings.TrimSpace(source), version, date, nil
}
