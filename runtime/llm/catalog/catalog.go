// Package catalog knows the context windows and prices of models: generated
// data, embedded in the binary. The data is that of the npm package
// @pydantic/genai-prices (MIT, see LICENSE.genai-prices), reduced to the
// vendors this program can talk to.
package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

//go:generate node gen/gen.mjs

//go:embed catalog.jsonl
var data []byte

// Catalog is what is known about models. It is safe for concurrent use.
type Catalog struct{ head head }

// head is the first line of the data; gen/gen.mjs writes it. The models of its
// providers follow, one provider a line.
type head struct {
	Source    string      `json:"source"`
	Version   string      `json:"version"`
	Date      string      `json:"date"` // YYYY-MM-DD, when the data was published
	Providers []*provider `json:"providers"`
}

type provider struct {
	ID       string   `json:"id"`
	API      string   `json:"api"`      // what the addresses of its API begin with, as a regular expression
	Match    *rule    `json:"match"`    // other names of the provider
	Fallback []string `json:"fallback"` // providers whose models it offers as well

	// models decodes the provider's line when it is first asked for: a thread needs
	// one provider, and to decode all cost every thread's process 0.4 MB of
	// allocations, of which it kept 0.2 MB (heap profile).
	models func() []entry
}

type entry struct {
	ID     string  `json:"id"`
	Match  rule    `json:"match"`
	Window int     `json:"window"` // tokens; 0 when unknown
	Prices []price `json:"prices"` // by the day they begin, oldest first; none when unknown
}

// price holds from a day on, YYYY-MM-DD; empty is since ever.
type price struct {
	From  string `json:"from"`
	Rates rates  `json:"rates"`
	Long  *struct {
		Above int   `json:"above"` // tokens of context
		Rates rates `json:"rates"`
	} `json:"long"`
}

// rates are micro-dollars per million tokens: input, output, cache read, cache
// write.
type rates [4]int64

func (r rates) price() llm.Price {
	return llm.Price{Input: r[0], Output: r[1], CacheRead: r[2], CacheWrite: r[3]}
}

// Load decodes the head of the embedded catalogue.
func Load() (*Catalog, error) { return read(data) }

func read(data []byte) (*Catalog, error) {
	c := &Catalog{}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(line, &c.head); err != nil {
		return nil, fmt.Errorf("model catalogue: %w", err)
	}
	for _, p := range c.head.Providers {
		own, others, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return nil, fmt.Errorf("model catalogue: no line with the models of %s", p.ID)
		}
		p.models = sync.OnceValue(func() []entry {
			var models []entry
			// A line that does not decode is a provider without known models; a test
			// says that all do.
			_ = json.Unmarshal(own, &models)
			return models
		})
		rest = others
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("model catalogue: %d bytes of no provider", len(rest))
	}
	return c, nil
}

// Info tells where the data comes from.
func (c *Catalog) Info() (source, version, date string) {
	return c.head.Source, c.head.Version, c.head.Date
}

// Published is the day the data was published.
func (c *Catalog) Published() (time.Time, error) { return time.Parse(time.DateOnly, c.head.Date) }

// Models are the ids of a provider's own models, in the order of the data.
func (c *Catalog) Models(provider string) []string {
	p := c.provider(provider)
	if p == nil {
		return nil
	}
	var ids []string
	for _, e := range p.models() {
		ids = append(ids, e.ID)
	}
	return ids
}

// Lookup finds a model of a provider by the data's own rules, as of a day.
//
// Some models cost more when the context is longer than a certain length. They
// are given with that length as context window, so that the lower price holds;
// [Catalog.LookupLong] gives them whole.
func (c *Catalog) Lookup(provider, model string, day time.Time) (llm.Model, bool) {
	return c.lookup(provider, model, day, false)
}

// LookupLong is [Catalog.Lookup] with the whole context window and both prices.
func (c *Catalog) LookupLong(provider, model string, day time.Time) (llm.Model, bool) {
	return c.lookup(provider, model, day, true)
}

func (c *Catalog) lookup(provider, model string, day time.Time, long bool) (llm.Model, bool) {
	p := c.provider(provider)
	if p == nil {
		return llm.Model{}, false
	}
	id := strings.ToLower(strings.TrimSpace(model))
	e := c.entry(p, id)
	if e == nil {
		e = c.entry(p, dated(id))
	}
	if e == nil {
		return llm.Model{}, false
	}
	out := llm.Model{ID: model, ContextWindow: e.Window}
	now, ok := e.on(day)
	if !ok {
		return out, true
	}
	out.Price, out.Priced = now.Rates.price(), true
	switch {
	case now.Long == nil:
	case long:
		out.Price = now.Long.Rates.price()
		out.Price.UpTo, out.Price.Short = int64(now.Long.Above), llm.RatesOf(now.Rates.price())
	case out.ContextWindow == 0 || out.ContextWindow > now.Long.Above:
		out.ContextWindow = now.Long.Above
	}
	return out, true
}

// At is the provider whose API is at an address; empty when it is nobody's.
func (c *Catalog) At(address string) string {
	for _, p := range c.head.Providers {
		// All expressions of the data compile, says a test.
		if begins, err := regexp.MatchString("^(?:"+p.API+")", address); p.API != "" && err == nil && begins {
			return p.ID
		}
	}
	return ""
}

// Offers reports whether a provider itself has a model: not one it would bill at
// another's price.
func (c *Catalog) Offers(provider, model string) bool {
	p := c.provider(provider)
	if p == nil {
		return false
	}
	id := strings.ToLower(strings.TrimSpace(model))
	return p.own(id) != nil || p.own(dated(id)) != nil
}

// Knows reports whether the catalogue has models of a provider.
func (c *Catalog) Knows(provider string) bool { return c.provider(provider) != nil }

// provider finds a provider by its id or by one of its other names.
func (c *Catalog) provider(name string) *provider {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, p := range c.head.Providers {
		if p.ID == name {
			return p
		}
	}
	for _, p := range c.head.Providers {
		if p.Match != nil && p.Match.holds(name) {
			return p
		}
	}
	return nil
}

// entry finds the first model that matches, at the provider or at those whose
// models it offers.
func (c *Catalog) entry(p *provider, id string) *entry {
	if e := p.own(id); e != nil {
		return e
	}
	for _, name := range p.Fallback {
		// The data is one level deep; a provider that fell back on itself would not
		// end.
		if other := c.provider(name); other != nil && len(other.Fallback) == 0 {
			if e := c.entry(other, id); e != nil {
				return e
			}
		}
	}
	return nil
}

// own finds the first of the provider's own models that matches.
func (p *provider) own(id string) *entry {
	models := p.models()
	for i := range models {
		if models[i].Match.holds(id) {
			return &models[i]
		}
	}
	return nil
}

// on is the price that holds on a day.
func (e *entry) on(day time.Time) (price, bool) {
	today := day.UTC().Format(time.DateOnly)
	for i := len(e.Prices) - 1; i >= 0; i-- {
		if e.Prices[i].From <= today {
			return e.Prices[i], true
		}
	}
	return price{}, false
}

// compactDate is a date at the end of a part of a model id: -20250929.
var compactDate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(-|:|$)`)
})

// dated writes the dates in an id with dashes; vendors and gateways differ in
// that, and the data has only one form.
func dated(id string) string { return compactDate().ReplaceAllString(id, "-$1-$2-$3$4") }
