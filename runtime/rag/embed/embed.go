package embed

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Client turns texts into vectors. It is safe for concurrent use.
type Client interface {
	// Embed returns a vector for each text, in their order. An error is a [*NoneError],
	// an [*Error], a *tool.Fault of the purse, or wraps the cause of ctx. Beside an error
	// there are no vectors, and Cost says what was spent all the same.
	Embed(ctx context.Context, texts []string) (Vectors, error)
}

// Vectors are what texts became.
type Vectors struct {
	Model     string      // as the endpoint calls it: vectors of another are not compared with these
	Dimension int         // of each
	Vectors   [][]float32 // finite and not zero; of any length
	Tokens    int64       // that were billed
	Cost      thread.Micros
	Unpriced  bool // its cost is not known, and Cost is 0
	Cut       int  // texts that were too long for the model, of which the beginning counts
}

// add counts what a part of the texts cost.
func (v *Vectors) add(part Vectors) {
	v.Tokens = thread.Sum(v.Tokens, part.Tokens)
	v.Cost = v.Cost.Plus(part.Cost)
	v.Cut += part.Cut
}

const (
	// ollamaURL is where Ollama listens unless it is told otherwise (its FAQ).
	ollamaURL = "http://127.0.0.1:11434/v1"
	// requestTime is how long one request may take, and silentTime how long nothing may
	// arrive. A model on the processor of this machine needs seconds for a batch.
	requestTime = 2 * time.Minute
	silentTime  = time.Minute
)

// Deps is what a source needs. All but Providers may be left out.
type Deps struct {
	Providers *provider.Source
	OllamaURL string                                     // where Ollama is looked for
	Timeout   time.Duration                              // of one request
	Now       func() time.Time                           // for headers that name a time
	Draw      func() float64                             // what chance adds to waits, from 0 to less than 1
	Pause     func(context.Context, time.Duration) error // between two attempts
}

// Source opens endpoints. It keeps what it learns of them for the life of the process:
// whether Ollama is there, and how long the vectors of a model are.
type Source struct {
	deps   Deps
	http   func() *http.Client
	ollama ollama

	mu    sync.Mutex
	known map[string]int // the dimension by endpoint and model
}

// NewSource returns a source. Nothing is looked for and nothing is opened before a
// text is embedded.
func NewSource(d Deps) *Source {
	d.OllamaURL = cmp.Or(d.OllamaURL, ollamaURL)
	d.Timeout = cmp.Or(d.Timeout, requestTime)
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Draw == nil {
		d.Draw = rand.Float64
	}
	if d.Pause == nil {
		d.Pause = pause
	}
	return &Source{deps: d, http: sync.OnceValue(newHTTP), known: map[string]int{}}
}

// newHTTP is a client with connections of its own.
func newHTTP() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = standard.Clone()
	}
	return &http.Client{Transport: transport}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// For is a client by settings, which pays with purse; nil: nobody is charged, and
// what it cost is only told. Ollama is looked for, and keys are asked for, with the
// first text.
func (s *Source) For(settings config.Embedding, purse tool.Purse) Client {
	return &client{source: s, settings: settings, purse: purse}
}

// client is an endpoint as a call sees it.
type client struct {
	source   *Source
	settings config.Embedding
	purse    tool.Purse
}

// Embed implements [Client].
func (c *client) Embed(ctx context.Context, texts []string) (Vectors, error) {
	if len(texts) == 0 {
		return Vectors{}, nil
	}
	to, err := c.source.endpoint(ctx, c.settings)
	if err != nil {
		return Vectors{}, err
	}
	if !to.model.Priced && c.purse != nil {
		return Vectors{}, &NoneError{
			Why: "the price of " + to.model.ID + " is not known, so a thread cannot pay for it",
			Try: "set embedding.price in agent/memory.yaml, in dollars per million tokens; 0 where it costs nothing",
		}
	}
	out, err := (&job{endpoint: to, purse: c.purse}).run(ctx, texts)
	if failed := new(Error); errors.As(err, &failed) && failed.Kind == KindUnreachable && c.settings.BaseURL == "" {
		c.source.ollama.forget()
	}
	return out, err
}

// endpoint is where requests go.
type endpoint struct {
	source   *Source
	provider config.Provider // whose key it is
	baseURL  string
	model    llm.Model // that is asked
	asked    int       // the dimension that is asked for; 0: none
	batch    int       // texts of one request
}

// endpoint finds where requests go by settings.
func (s *Source) endpoint(ctx context.Context, set config.Embedding) (endpoint, error) {
	e := endpoint{source: s, provider: set.Endpoint(), baseURL: set.BaseURL, asked: set.Dimensions, batch: max(1, set.Batch)}
	named := ""
	if e.baseURL == "" {
		model, err := s.ollama.find(ctx, s, set.Model)
		if err != nil {
			return e, err
		}
		set.BaseURL, e.baseURL, named = s.deps.OllamaURL, s.deps.OllamaURL, model
	}
	if s.deps.Providers.Lacks(e.provider) {
		return e, &NoneError{
			Why: "the variable " + set.APIKeyEnv + " with the key of the embedding endpoint is not set",
			Try: "set " + set.APIKeyEnv + ", or leave api_key_env of agent/memory.yaml empty where no key is needed",
		}
	}
	var err error
	e.model, err = s.deps.Providers.Embeds(set, named)
	return e, err
}

// dimension holds the dimension of a model against the one that it had before in this
// process, and notes it: a change is told once.
func (s *Source) dimension(key string, now int) (before int, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.known[key]
	s.known[key] = now
	return before, !known || before == now
}
