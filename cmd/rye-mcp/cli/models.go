package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// modelsJSON is what models writes with --json.
type modelsJSON struct {
	Success bool `json:"success"`
	// Default is what threads get that name no model; empty when there is none.
	Default  string      `json:"default"`
	Prices   pricesJSON  `json:"prices"`
	Models   []modelJSON `json:"models"`
	Warnings []string    `json:"warnings,omitempty"`
}

// pricesJSON says where the catalogue of prices comes from.
type pricesJSON struct {
	Source  string `json:"source"`
	Version string `json:"version"`
	Date    string `json:"date"`
	Stale   bool   `json:"stale"` // older than 180 days
}

// modelJSON is one model. Prices are dollars per million tokens.
type modelJSON struct {
	Model  string      `json:"model"` // provider/model, as --model takes it
	Tiers  []string    `json:"tiers"`
	Usable bool        `json:"usable"`
	WhyNot string      `json:"why_not,omitempty"`
	Try    string      `json:"try,omitempty"`
	Price  *dollarRate `json:"price"` // null: not known
	// Short is the price of calls that are short, where longer ones cost more.
	Short    *shortRate `json:"short_price,omitempty"`
	PricedOn string     `json:"priced_on,omitempty"`
	Window   int        `json:"context_window"`    // 0: not known
	Output   int        `json:"max_output_tokens"` // of one answer
	Vision   bool       `json:"vision"`
	Wire     string     `json:"wire"`
}

type dollarRate struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// shortRate is the price of calls with at most so many tokens of input.
type shortRate struct {
	UpTo int64 `json:"up_to"`
	dollarRate
}

func newModelsCommand(sys System, opts *options) *cobra.Command {
	var (
		only        string
		all, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the models that threads can be given, what they cost, and why some cannot be used",
		Long: `List the models that the files of providers name: their tiers, what they cost in
dollars per million tokens, their context window and longest answer, and why one cannot
be used. Nothing is asked of a provider, but one on this machine is looked for; no
command that gives a key is run. --all adds the models of the built-in catalogue,
whose prices have its date.`,
		Example: `  rye-mcp models
  rye-mcp models --provider anthropic --all
  rye-mcp models --json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			return listModels(cmd.Context(), sys, *opts, only, all, asJSON)
		}),
	}
	cmd.Flags().StringVar(&only, "provider", "", "only those of this provider")
	cmd.Flags().BoolVar(&all, "all", false, "also those of the catalogue that no file names")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func listModels(ctx context.Context, sys System, opts options, only string, all, asJSON bool) error {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	if dir, err = canonical(dir); err != nil {
		return err
	}
	registry := newDoctor(sys, opts, dir).providers
	found, err := modelsOf(ctx, registry, only, all)
	if err != nil {
		return err
	}
	return conclude(sys, asJSON, found, true, func() error { return writeModels(newDisplay(sys, opts), found) })
}

// modelsOf asks for everything that is listed.
func modelsOf(ctx context.Context, r *provider.Registry, only string, all bool) (modelsJSON, error) {
	found := modelsJSON{Success: true, Models: []modelJSON{}}
	names, err := r.Names()
	if err != nil {
		return found, err
	}
	if only != "" {
		if !slices.Contains(names, only) {
			return found, &config.NotFoundError{Provider: only, Known: names}
		}
		names = []string{only}
	}
	if found.Prices.Source, found.Prices.Version, found.Prices.Date, err = r.Prices(); err != nil {
		return found, err
	}
	for _, name := range names {
		offers, err := r.Offers(ctx, name, all)
		if err != nil && only != "" {
			return found, err
		}
		if err != nil {
			found.Warnings = append(found.Warnings, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		for _, o := range offers {
			found.Models = append(found.Models, modelOf(o))
			found.Prices.Stale = found.Prices.Stale || r.Stale(o.Choice)
		}
	}
	if found.Prices.Stale {
		found.Warnings = append(found.Warnings, fmt.Sprintf(
			"the prices of the catalogue are of %s, more than 180 days ago, so a spend limit may let more through than it says; update rye-mcp, or set prices in the files of the providers", found.Prices.Date))
	}
	choice, err := r.Choose(ctx, provider.Want{})
	var none *provider.NoProviderError
	switch {
	case err == nil:
		found.Default = choice.Ref()
	case !errors.As(err, &none):
		found.Warnings = append(found.Warnings, "threads that name no model: "+err.Error())
	}
	return found, nil
}

func modelOf(o provider.Offer) modelJSON {
	m := modelJSON{
		Model: o.Ref(), Tiers: o.Tiers, Usable: o.WhyNot == "", WhyNot: o.WhyNot, Try: o.Try, Window: o.Model.ContextWindow,
		Output: o.MaxOutput, Vision: o.Vision, Wire: o.Wire,
	}
	if m.Tiers == nil {
		m.Tiers = []string{}
	}
	if o.Model.Priced {
		p := o.Model.Price
		m.Price = rateOf(llm.RatesOf(p))
		if p.UpTo > 0 {
			m.Short = &shortRate{p.UpTo, *rateOf(p.Short)}
		}
	}
	if !o.PricedOn.IsZero() {
		m.PricedOn = o.PricedOn.Format(time.DateOnly)
	}
	return m
}

func rateOf(r llm.Rates) *dollarRate {
	return &dollarRate{dollars(r.Input), dollars(r.Output), dollars(r.CacheRead), dollars(r.CacheWrite)}
}

func dollars(micros int64) float64 { return float64(micros) / thread.MicrosPerDollar }

func writeModels(d display, found modelsJSON) error {
	t := table{header: []string{"MODEL", "TIERS", "IN", "OUT", "CACHED", "WINDOW", "ANSWER", "STATE"}}
	for _, m := range found.Models {
		state := cell{"ok", green}
		if !m.Usable {
			state = cell{m.WhyNot, yellow}
		}
		in, out, cached := "?", "?", "?"
		if m.Price != nil {
			in, out, cached = perMillion(m.Price.Input), perMillion(m.Price.Output), perMillion(m.Price.CacheRead)
		}
		t.add(text(m.Model), text(strings.Join(m.Tiers, " ")), text(in), text(out), text(cached),
			text(size(m.Window)), text(size(m.Output)), state)
	}
	if err := t.write(d); err != nil {
		return err
	}
	foot := fmt.Sprintf("\nDollars per million tokens, as of %s (%s %s). ", found.Prices.Date, found.Prices.Source, found.Prices.Version)
	if found.Default != "" {
		foot += "Threads that name no model use " + found.Default + ".\n"
	} else {
		foot += "Threads that name no model have none: rye-mcp doctor says what to set.\n"
	}
	for _, m := range found.Models {
		if m.Short != nil {
			foot += fmt.Sprintf("%s costs %s and %s where a call has at most %d tokens of input.\n", m.Model, perMillion(m.Short.Input), perMillion(m.Short.Output), m.Short.UpTo)
		}
	}
	for _, w := range found.Warnings {
		foot += d.paint(yellow, "warning") + "  " + plain.Line(w) + "\n"
	}
	_, err := d.out.Write([]byte(foot))
	return err
}

func perMillion(price float64) string { return strconv.FormatFloat(price, 'f', -1, 64) }

// size is a number of tokens, in thousands where it is large.
func size(tokens int) string {
	switch {
	case tokens == 0:
		return "?"
	case tokens >= 1_000_000 && tokens%100_000 == 0:
		return strconv.FormatFloat(float64(tokens)/1e6, 'f', -1, 64) + "M"
	case tokens >= 10_000:
		return strconv.Itoa(tokens/1000) + "k"
	}
	return strconv.Itoa(tokens)
}
