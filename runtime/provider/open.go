package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/anthropic"
	"github.com/rye-mcp/rye-mcp/runtime/llm/lenient"
	"github.com/rye-mcp/rye-mcp/runtime/llm/openai"
	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Open returns a client for a choice, and a function that releases what it
// holds: idle connections, and the server of a scripted provider, which outlives
// ctx, as the model of a thread outlives the time it was first given.
func (r *Registry) Open(ctx context.Context, c Choice) (llm.Client, func() error, error) {
	p, _, err := r.config.Provider(c.Provider)
	if err != nil {
		return nil, nil, err
	}
	if !r.usable(p) {
		return nil, nil, r.missing(p)
	}
	if err := r.checkBase(p); err != nil {
		return nil, nil, err
	}
	resilience, _, err := r.config.Resilience()
	if err != nil {
		return nil, nil, err
	}
	transport := newTransport()
	cfg := wire.Config{
		BaseURL:      r.BaseURL(p),
		Headers:      p.Headers,
		HTTPClient:   &http.Client{Transport: transport},
		StallTimeout: time.Duration(resilience.StallSeconds * float64(time.Second)),
		FirstTimeout: time.Duration(resilience.FirstTokenSeconds * float64(time.Second)),
	}
	if cfg.KeyHeader = p.APIKeyHeader; p.APIKeyScheme != "" {
		cfg.KeyScheme = p.APIKeyScheme + " "
	}
	release := func() error { transport.CloseIdleConnections(); return nil }
	speaks := p.Wire
	switch p.API {
	case config.APIAnthropic:
	case config.APIOpenAI:
		speaks = wireOf(p, cfg.BaseURL, c.Model.ID)
	case config.APIScripted:
		server, err := r.script(context.WithoutCancel(ctx), p) // it serves until it is closed
		if err != nil {
			return nil, nil, err
		}
		release = func() error { transport.CloseIdleConnections(); return server.Close() }
		// The way leads to this machine only; a proxy has no place in it.
		transport.Proxy = nil
		if cfg.BaseURL = server.BaseURL(); p.Wire != "" {
			cfg.BaseURL += "/v1"
		}
	default:
		return nil, nil, fmt.Errorf("model provider %s: api %q is none of %s, %s, %s",
			p.Name, p.API, config.APIAnthropic, config.APIOpenAI, config.APIScripted)
	}
	client, err := r.keyed(ctx, p, func(key string) llm.Client {
		cfg.APIKey = key
		return speaking(speaks)(cfg)
	})
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return lenient.New(client), release, nil
}

// wireOf is the protocol that a model of a provider of OpenAI's API is asked over. The
// newer one is taken by itself only where it surely is: at OpenAI itself.
func wireOf(p config.Provider, baseURL, model string) string {
	if p.Wire == "" && openai.Official(baseURL) && openai.WantsResponses(model) {
		return config.WireResponses
	}
	return cmp.Or(p.Wire, config.WireChat)
}

// speaking makes clients of a protocol.
func speaking(wireName string) func(wire.Config) llm.Client {
	switch wireName {
	case config.WireChat:
		return openai.New
	case config.WireResponses:
		return openai.NewResponses
	}
	return anthropic.New
}

// script serves the script of a provider.
func (r *Registry) script(ctx context.Context, p config.Provider) (*scripted.Server, error) {
	src, path, err := r.config.File(p.Script)
	if err != nil {
		return nil, fmt.Errorf("script of model provider %s: %w", p.Name, err)
	}
	script, err := scripted.Parse(path, src)
	if err != nil {
		return nil, err
	}
	return scripted.Serve(ctx, script, scripted.Options{})
}

// BaseURL is where a provider is found: its variable goes before its file.
func (r *Registry) BaseURL(p config.Provider) string {
	base := cmp.Or(r.baseInVariable(p), p.BaseURL)
	address, query, asks := strings.Cut(base, "?")
	if address = strings.TrimRight(address, "/"); asks {
		return address + "?" + query
	}
	return address
}

// baseInVariable is the address in a provider's variable; empty where it has none.
func (r *Registry) baseInVariable(p config.Provider) string {
	if p.BaseURLEnv == "" {
		return ""
	}
	return strings.TrimSpace(r.getenv(p.BaseURLEnv))
}

// checkBase refuses an address that no request can be sent to, and names where it stands.
// The address itself may hold a password, so it is not shown.
func (r *Registry) checkBase(p config.Provider) error {
	base := r.BaseURL(p)
	if base == "" {
		return nil // the protocol's own
	}
	// The address has no model yet.
	u, err := url.Parse(strings.ReplaceAll(base, "{model}", "model"))
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	where := "base_url of its settings"
	if r.baseInVariable(p) != "" {
		where = "the variable " + p.BaseURLEnv
	}
	return tool.Faultf(tool.CodeInvalidConfig, "model provider %s cannot be used: %s is not the address of a server; valid is http:// or https:// with a host, as https://api.example.com", p.Name, where).
		WithHint("tell the person").WithTry("set %s to an address with http:// or https://", where)
}

// newTransport has the settings of the standard library's default transport and
// connections of its own, so that they can be closed.
func newTransport() *http.Transport {
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		return standard.Clone()
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment}
}
