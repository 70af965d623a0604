package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// NoProviderError says that no model provider can be used, and what to set.
type NoProviderError struct {
	Provider  string   // the one that was asked for; empty when any would do
	Variables []string // key variables that are not set, as "NAME (provider)"
	Local     []string // providers on this machine that do not answer
}

func (e *NoProviderError) add(p config.Provider) {
	if p.Local {
		e.Local = append(e.Local, p.Name)
	} else if p.APIKeyEnv != "" {
		e.Variables = append(e.Variables, fmt.Sprintf("%s (%s)", p.APIKeyEnv, p.Name))
	}
}

func (e *NoProviderError) Error() string {
	if e.Provider != "" {
		if len(e.Local) > 0 {
			return fmt.Sprintf("model provider %s cannot be used: it does not answer; start it", e.Provider)
		}
		return fmt.Sprintf("model provider %s cannot be used: set %s", e.Provider, strings.Join(e.Variables, ", "))
	}
	var ways []string
	if len(e.Variables) > 0 {
		ways = append(ways, "set one of "+strings.Join(e.Variables, ", "))
	}
	if len(e.Local) > 0 {
		ways = append(ways, "start "+strings.Join(e.Local, " or "))
	}
	ways = append(ways, "name another in provider.default of the user's settings")
	return "no model provider can be used: " + strings.Join(ways, ", or ")
}

// UnknownModelError says that no usable provider has a model, or that there is
// no such tier.
type UnknownModelError struct {
	Model    string
	Provider string   // the one that was asked, else the default provider
	Tiers    []string // its tiers and aliases, sorted
	Only     bool     // no other provider was asked
}

func unknownModel(name string, p config.Provider) error {
	return &UnknownModelError{Model: name, Provider: p.Name, Tiers: tierNames(p)}
}

func tierNames(p config.Provider) []string {
	tiers := slices.Collect(maps.Keys(p.Tiers))
	tiers = slices.AppendSeq(tiers, maps.Keys(p.Aliases))
	slices.Sort(tiers)
	return tiers
}

func (e *UnknownModelError) Error() string {
	if e.Only {
		return fmt.Sprintf("model provider %s has no model %q; it has the tiers %s", e.Provider, item.Shown(e.Model), strings.Join(item.ShownAll(e.Tiers), ", "))
	}
	return fmt.Sprintf("no usable provider has the model %q; %s has the tiers %s; any other model is named as provider/model",
		item.Shown(e.Model), e.Provider, strings.Join(item.ShownAll(e.Tiers), ", "))
}
