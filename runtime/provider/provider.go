// Package provider turns settings into a model and a client for it: which
// provider and model a thread uses, what the model costs, and the connection.
//
// The order of choice: the caller's override; the model id of the directive
// where its vendor can be used; the directive's tier at the default provider.
// The default provider is the one agent.yaml names, else the first in its order
// whose key variable is set, else one on this machine that answers.
package provider

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/catalog"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Config is what is read of the settings; *config.Snapshot implements it.
type Config interface {
	Agent() (config.Agent, []string, error)
	Resilience() (config.Resilience, []string, error)
	Provider(name string) (config.Provider, []string, error)
	ProviderNames() ([]string, error)
	File(rel string) ([]byte, string, error)
}

// Source is what choosing a provider needs beside the settings: the environment, and
// the catalogue of models, which is read when it is first needed.
type Source struct {
	getenv  func(string) string
	keys    keyring
	catalog func() (*catalog.Catalog, error)
	today   func() time.Time
	answers func(ctx context.Context, baseURL string) bool
	stale   sync.Once // somebody was told that prices are old
}

// NewSource returns a source that reads the environment through getenv.
func NewSource(getenv func(string) string) *Source {
	return &Source{
		getenv:  getenv,
		keys:    keyring{run: runFound, now: time.Now, environ: os.Environ, system: runtime.GOOS},
		catalog: sync.OnceValues(catalog.Load),
		today:   time.Now, // prices change on announced days
		answers: answers,
	}
}

// Commands has the commands that give keys run in an environment, its entries as
// NAME=value; without it in that of this process.
func (s *Source) Commands(environ func() []string) *Source {
	s.keys.environ = environ
	return s
}

// Clock has the days of prices, and how long keys are kept, go by a clock.
func (s *Source) Clock(now func() time.Time) *Source {
	s.today, s.keys.now = now, now
	return s
}

// With returns the registry of these settings.
func (s *Source) With(settings Config) *Registry { return &Registry{Source: s, config: settings} }

// Registry chooses and opens providers by one reading of the settings. It is safe
// for concurrent use.
type Registry struct {
	*Source
	config    Config
	elsewhere bool     // others run the thread, see [Registry.Elsewhere]
	able      []string // providers that those can use
}

// Elsewhere is the registry for a thread that is queued for others, who can use some of the
// providers. One that is named is taken whoever has its key now; the default is one of
// theirs where there is one.
func (r *Registry) Elsewhere(able []string) *Registry {
	return &Registry{Source: r.Source, config: r.config, elsewhere: true, able: able}
}

// Want says which model is asked for. All of it may be empty.
type Want struct {
	Override string // the caller's: "provider/model", a model id, a tier or an alias
	Provider string // the directive's <model provider>
	Tier     string // the directive's <model tier>
	ID       string // the directive's <model id>
	Fallback string // the directive's <model fallback>; written as Override
}

// DefaultTier is used where neither caller nor directive says anything.
const DefaultTier = "general"

// Choice is a model at a provider.
type Choice struct {
	Provider      string
	Model         llm.Model
	ToolUse       string // config.ToolUseNative or config.ToolUseText
	Vision        bool   // can be given images
	Local         bool   // runs on this machine and costs nothing
	AllowUnpriced bool   // may run under a spend limit although its price is unknown
	MaxOutput     int    // tokens of one answer, at most
	// PricedOn is the day the catalogue's price was published; zero where the price is
	// the user's own, or nothing.
	PricedOn time.Time
	// Warnings say where the choice is not what was asked for.
	Warnings []string
}

// Ref names the choice: "provider/model". As an override it gives the same
// choice again.
func (c Choice) Ref() string { return c.Provider + "/" + c.Model.ID }

// Unpriced reports that what the model costs is not known and nobody has said
// that it may run all the same, so that no spend limit can be kept.
func (c Choice) Unpriced() bool { return !c.Model.Priced && !c.Local && !c.AllowUnpriced }

// Choose finds the model for what is wanted. An override that cannot be followed is
// an error, and so is a directive's provider that cannot be used: another vendor is
// never taken instead. A directive's model id that cannot be had gives way, with a
// warning, to the fallback and then to the tier that the directive names; where it
// names neither, that is an error too. The errors are [*NoProviderError],
// [*UnknownModelError], *config.NotFoundError and those of the settings.
func (r *Registry) Choose(ctx context.Context, w Want) (Choice, error) {
	switch {
	case w.Override != "":
		return r.named(ctx, w.Override)
	case w.Provider != "":
		return r.atProvider(ctx, w)
	case w.ID != "":
		return r.byDirective(ctx, w)
	}
	return r.byTier(ctx, w.Tier)
}

// byTier is the model of a tier of the default provider.
func (r *Registry) byTier(ctx context.Context, tier string) (Choice, error) {
	base, err := r.defaultProvider(ctx)
	if err != nil {
		return Choice{}, err
	}
	return r.tierOf(base, tier)
}

// tierOf is the model of a tier of a provider.
func (r *Registry) tierOf(p config.Provider, tier string) (Choice, error) {
	tier = cmp.Or(tier, DefaultTier)
	id, ok := tierModel(p, tier)
	if !ok {
		return Choice{}, unknownModel(tier, p)
	}
	return r.choice(p, id)
}

// Fallback finds the directive's fallback model; false when it names none or
// none that can be used, which the error then explains.
func (r *Registry) Fallback(ctx context.Context, w Want) (Choice, bool, error) {
	if w.Fallback == "" {
		return Choice{}, false, nil
	}
	choice, err := r.named(ctx, w.Fallback)
	if err != nil {
		return Choice{}, false, fmt.Errorf("fallback model %s: %w", w.Fallback, err)
	}
	return choice, true, nil
}

// KeyVariables are the names of all environment variables that providers read
// keys and addresses from, sorted. A thread process must be given them.
// Providers whose settings cannot be read are left out.
func (r *Registry) KeyVariables() []string {
	names, err := r.config.ProviderNames()
	if err != nil {
		return nil
	}
	var variables []string
	for _, name := range names {
		p, _, err := r.config.Provider(name)
		if err != nil {
			continue
		}
		for _, variable := range []string{p.APIKeyEnv, p.BaseURLEnv} {
			if variable != "" {
				variables = append(variables, variable)
			}
		}
	}
	slices.Sort(variables)
	return slices.Compact(variables)
}

// probeTimeout is how long a provider on this machine may take to answer
// whether it is there.
const probeTimeout = 200 * time.Millisecond

// Answers reports whether anything speaks HTTP where a provider on this machine
// is found. It waits for 200 ms at most.
func (r *Registry) Answers(ctx context.Context, p config.Provider) bool {
	return r.answers(ctx, r.BaseURL(p))
}

// answers reports whether anything speaks HTTP at a base URL.
func answers(ctx context.Context, baseURL string) bool {
	return probe(ctx, baseURL, "models", func(io.Reader) {}) // that there is an answer is all that matters
}

// probe reads what is at a path below a base URL, and reports whether anything answers.
func probe(ctx context.Context, baseURL, path string, read func(io.Reader)) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath(path).String(), nil)
	if err != nil {
		return false
	}
	transport := newTransport()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	read(resp.Body)
	return true
}
