package provider

import (
	"fmt"
	"math"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// choice puts together what is known of a model at a provider.
func (r *Registry) choice(p config.Provider, id string) (Choice, error) {
	agent, _, err := r.config.Agent()
	if err != nil {
		return Choice{}, err
	}
	model, err := r.model(p, id)
	if err != nil {
		return Choice{}, err
	}
	out := Choice{
		Provider:      p.Name,
		Model:         model,
		ToolUse:       p.ToolUse,
		Local:         p.Local,
		AllowUnpriced: p.AllowUnpriced,
		MaxOutput:     agent.MaxOutputTokens,
	}
	out.Vision = canSee(p, id)
	if out.PricedOn, err = r.pricedOn(p, model); err != nil {
		return Choice{}, err
	}
	if model.MaxOutputTokens > 0 {
		out.MaxOutput = min(out.MaxOutput, model.MaxOutputTokens)
	}
	return out, nil
}

// canSee is what the provider file says of a model, or of all of them. Most
// models can, and of those that cannot the catalogue does not know it.
func canSee(p config.Provider, id string) bool {
	for _, said := range []*bool{p.Models[id].Vision, p.Vision} {
		if said != nil {
			return *said
		}
	}
	return true
}

// model is what the catalogue says, with the provider file's words on top.
func (r *Registry) model(p config.Provider, id string) (llm.Model, error) {
	over := p.Models[id]
	model := llm.Model{ID: id}
	if !p.Local && p.API != config.APIScripted {
		known, err := r.catalog()
		if err != nil {
			return model, err
		}
		if found, ok := known.Lookup(p.Name, id, r.today()); ok {
			model = found
		}
		if over.ContextWindow > model.ContextWindow {
			// Beyond the window of the first price another may hold, for calls that are so long.
			if long, ok := known.LookupLong(p.Name, id, r.today()); ok {
				model = long
			}
		}
	}
	if over.ContextWindow > 0 {
		model.ContextWindow = over.ContextWindow
	}
	if over.MaxOutputTokens > 0 {
		model.MaxOutputTokens = over.MaxOutputTokens
	}
	if p.Local {
		model.Price, model.Priced = llm.Price{}, true
		return model, nil
	}
	if err := reprice(&model, over); err != nil {
		return model, fmt.Errorf("price of %s/%s: %w", p.Name, id, err)
	}
	return model, nil
}

// reprice applies the prices of a provider file. A price that it leaves out is
// the catalogue's; without one, caching costs what input costs, and a model
// without a price for input or output stays unpriced. One price holds for calls of any
// length then.
func reprice(model *llm.Model, over config.ModelOverride) error {
	if over.Input == nil && over.Output == nil && over.CacheRead == nil && over.CacheWrite == nil {
		return nil
	}
	if !model.Priced {
		if over.Input == nil || over.Output == nil {
			return nil
		}
		input, err := perMillion(*over.Input)
		if err != nil {
			return err
		}
		model.Price = llm.Price{CacheRead: input, CacheWrite: input}
		model.Priced = true
	}
	model.Price.UpTo, model.Price.Short = 0, llm.Rates{}
	for _, part := range []struct {
		to      *int64
		dollars *float64
	}{
		{&model.Price.Input, over.Input},
		{&model.Price.Output, over.Output},
		{&model.Price.CacheRead, over.CacheRead},
		{&model.Price.CacheWrite, over.CacheWrite},
	} {
		if part.dollars == nil {
			continue
		}
		micros, err := perMillion(*part.dollars)
		if err != nil {
			return err
		}
		*part.to = micros
	}
	return nil
}

// maxDollarsPerMillion keeps the product of a price and any number of tokens
// far from overflow; the dearest model costs less than a thousandth of it.
const maxDollarsPerMillion = 1e6

// perMillion converts dollars per million tokens, rounding up.
func perMillion(dollars float64) (int64, error) {
	if math.IsNaN(dollars) || dollars < 0 || dollars > maxDollarsPerMillion {
		return 0, fmt.Errorf("%v dollars per million tokens is not between 0 and %.0f", dollars, float64(maxDollarsPerMillion))
	}
	// Rounding to a thousandth first keeps 0.1 from becoming 100001.
	return int64(math.Ceil(math.Round(dollars*thread.MicrosPerDollar*1000) / 1000)), nil
}

// pricedOn is the day the price of a model was published, where the catalogue has it.
func (r *Registry) pricedOn(p config.Provider, model llm.Model) (time.Time, error) {
	over := p.Models[model.ID]
	own := p.Local || p.API == config.APIScripted || over.Input != nil && over.Output != nil
	if own || !model.Priced {
		return time.Time{}, nil
	}
	known, err := r.catalog()
	if err != nil {
		return time.Time{}, err
	}
	return known.Published()
}

// pricesAge is how long prices are taken as they are. Vendors change them a few times a
// year.
const pricesAge = 180 * 24 * time.Hour

// Stale reports that the price of a choice is so old that a spend limit may not hold.
func (r *Registry) Stale(c Choice) bool {
	return !c.PricedOn.IsZero() && r.today().Sub(c.PricedOn) > pricesAge
}

// StaleWarning says so of a choice, once for this process; empty where there is nothing
// to say, or it was said.
func (r *Registry) StaleWarning(c Choice) (warning string) {
	if r.Stale(c) {
		r.stale.Do(func() { warning = StalePrices(c) })
	}
	return warning
}

// StalePrices says how old the price of a choice is.
func StalePrices(c Choice) string {
	return fmt.Sprintf("the price of %s is of %s, more than 180 days ago, so a spend limit may let more through than it says; "+
		"update rye-mcp, or set the price in .ai/config/agent/providers/%s.yaml", c.Ref(), c.PricedOn.Format(time.DateOnly), c.Provider)
}
