package provider

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// settings are a Config in memory.
type settings struct {
	agent     config.Agent
	providers map[string]config.Provider
	files     map[string]string
}

func (s settings) Agent() (config.Agent, []string, error) { return s.agent, nil, nil }

func (s settings) Resilience() (config.Resilience, []string, error) {
	return config.Resilience{StallSeconds: 60}, nil, nil
}

func (s settings) Provider(name string) (config.Provider, []string, error) {
	p, ok := s.providers[name]
	if !ok {
		return p, nil, &config.NotFoundError{Provider: name, Known: slices.Sorted(maps.Keys(s.providers))}
	}
	p.Name = name
	return p, nil, nil
}

func (s settings) ProviderNames() ([]string, error) {
	return slices.Sorted(maps.Keys(s.providers)), nil
}

func (s settings) File(rel string) ([]byte, string, error) {
	text, ok := s.files[rel]
	if !ok {
		return nil, "", fs.ErrNotExist
	}
	return []byte(text), rel, nil
}

func usual() settings {
	tiers := func(fast, general string) map[string]string {
		return map[string]string{"fast": fast, "general": general}
	}
	aliases := map[string]string{"haiku": "fast"}
	return settings{
		agent: config.Agent{
			Provider:        config.ProviderDefaults{Order: []string{"anthropic", "openai", "openrouter"}},
			MaxOutputTokens: 8192,
		},
		providers: map[string]config.Provider{
			"anthropic": {API: config.APIAnthropic, APIKeyEnv: "ANTHROPIC_API_KEY", BaseURLEnv: "ANTHROPIC_BASE_URL",
				Tiers: tiers("claude-haiku-4-5", "claude-sonnet-5"), Aliases: aliases},
			"openai": {API: config.APIOpenAI, APIKeyEnv: "OPENAI_API_KEY", BaseURL: "https://api.openai.com/v1",
				Tiers: tiers("gpt-5-mini", "gpt-5"), Aliases: aliases},
			"openrouter": {API: config.APIOpenAI, APIKeyEnv: "OPENROUTER_API_KEY", BaseURL: "https://openrouter.ai/api/v1",
				Tiers: tiers("anthropic/claude-haiku-4.5", "anthropic/claude-sonnet-5"), Aliases: aliases},
			"ollama": {API: config.APIOpenAI, Local: true, BaseURL: "http://127.0.0.1:11434/v1",
				Tiers: tiers("qwen3:4b", "qwen3:8b"), Aliases: aliases},
			"scripted": {API: config.APIScripted, Script: "agent/scripts/test.yaml",
				Tiers: tiers("scripted-fast", "scripted-general")},
		},
	}
}

// registry is one in which only the given variables are set.
func registry(s settings, ollama bool, variables ...string) *Registry {
	r := NewSource(func(name string) string {
		if slices.Contains(variables, name) {
			return "secret-" + name
		}
		return ""
	}).With(s)
	r.today = func() time.Time { return time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC) }
	r.answers = func(context.Context, string) bool { return ollama }
	return r
}

func TestChoose(t *testing.T) {
	t.Parallel()
	const anthropicKey, openaiKey, openrouterKey = "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"
	for _, test := range []struct {
		name     string
		keys     []string
		standard string // provider.default
		ollama   bool
		want     Want
		ref      string // empty: an error
		says     string // in the warnings or in the error
	}{
		{name: "first of the order with a key", keys: []string{openaiKey, openrouterKey}, ref: "openai/gpt-5"},
		{name: "the default goes before the order", keys: []string{anthropicKey, openaiKey}, standard: "openai", ref: "openai/gpt-5"},
		{name: "the default needs no key", standard: "scripted", ref: "scripted/scripted-general"},
		{name: "the default lacks its key", keys: []string{openaiKey}, standard: "anthropic", says: "set ANTHROPIC_API_KEY (anthropic)"},
		{name: "the default does not exist", standard: "nobody", says: `no model provider "nobody"`},
		{name: "the scripted provider is never guessed", says: "no model provider can be used: set one of ANTHROPIC_API_KEY (anthropic), OPENAI_API_KEY (openai), OPENROUTER_API_KEY (openrouter), or start ollama, or name"},
		{name: "a local provider that answers", ollama: true, ref: "ollama/qwen3:8b"},
		{name: "a key goes before a local provider", ollama: true, keys: []string{openaiKey}, ref: "openai/gpt-5"},

		{name: "tier", keys: []string{openaiKey}, want: Want{Tier: "fast"}, ref: "openai/gpt-5-mini"},
		{name: "alias", keys: []string{openaiKey}, want: Want{Tier: "haiku"}, ref: "openai/gpt-5-mini"},
		{name: "unknown tier", keys: []string{openaiKey}, want: Want{Tier: "huge"}, says: "openai has the tiers fast, general, haiku"},

		{name: "directive id at its vendor", keys: []string{anthropicKey}, want: Want{Tier: "general", ID: "claude-3-5-haiku-20241022"},
			ref: "anthropic/claude-3-5-haiku-20241022"},
		{name: "directive id at a vendor that is not the default", keys: []string{anthropicKey, openaiKey}, standard: "openai",
			want: Want{ID: "claude-3-5-haiku-20241022"}, ref: "anthropic/claude-3-5-haiku-20241022"},
		{name: "directive id of a vendor without key", keys: []string{openaiKey}, want: Want{Tier: "fast", ID: "claude-3-5-haiku-20241022"},
			ref: "openai/gpt-5-mini", says: "using openai/gpt-5-mini (tier fast) instead"},
		{name: "directive id with a provider without key", keys: []string{openaiKey}, want: Want{ID: "anthropic/claude-haiku-4-5", Tier: "fast"},
			says: "set ANTHROPIC_API_KEY"},
		{name: "directive id that nobody has, and no tier", keys: []string{openaiKey}, want: Want{ID: "claude-3-5-haiku-20241022"},
			says: "no usable provider has the model"},
		{name: "directive id that nobody has, and a fallback", keys: []string{openaiKey}, want: Want{ID: "claude-haiku-4-5", Fallback: "fast", Tier: "general"},
			ref: "openai/gpt-5-mini", says: "using openai/gpt-5-mini (its fallback) instead"},

		{name: "provider", keys: []string{anthropicKey, openaiKey}, want: Want{Provider: "openai"}, ref: "openai/gpt-5"},
		{name: "provider and tier", keys: []string{anthropicKey, openaiKey}, want: Want{Provider: "openai", Tier: "haiku"}, ref: "openai/gpt-5-mini"},
		{name: "provider and id", keys: []string{anthropicKey, openaiKey}, want: Want{Provider: "openai", ID: "gpt-5", Tier: "fast"}, ref: "openai/gpt-5"},
		{name: "provider, once more in the id", keys: []string{openaiKey}, want: Want{Provider: "openai", ID: "openai/gpt-5"}, ref: "openai/gpt-5"},
		{name: "provider that does not exist", keys: []string{openaiKey}, want: Want{Provider: "zen", Tier: "fast", Fallback: "fast"}, says: `no model provider "zen"; known are anthropic`},
		{name: "provider without key", keys: []string{openaiKey}, want: Want{Provider: "anthropic", Tier: "fast"}, says: "set ANTHROPIC_API_KEY"},
		{name: "provider that does not answer", keys: []string{openaiKey}, want: Want{Provider: "ollama", Tier: "fast"}, says: "it does not answer"},
		{name: "provider on this machine with any id", ollama: true, want: Want{Provider: "ollama", ID: "mistral:7b"}, ref: "ollama/mistral:7b"},
		{name: "provider without the tier", keys: []string{openaiKey}, want: Want{Provider: "openai", Tier: "huge"}, says: "openai has the tiers"},
		{name: "provider without the id", keys: []string{openaiKey}, want: Want{Provider: "openai", ID: "claude-haiku-4-5", Tier: "fast"},
			says: `model provider openai has no model "claude-haiku-4-5"`},
		{name: "provider without the id, and a fallback", keys: []string{anthropicKey, openaiKey},
			want: Want{Provider: "openai", ID: "claude-haiku-4-5", Fallback: "anthropic/claude-haiku-4-5"}, ref: "anthropic/claude-haiku-4-5", says: "its fallback"},
		{name: "override goes before the provider", keys: []string{openaiKey}, want: Want{Override: "fast", Provider: "zen"}, ref: "openai/gpt-5-mini"},
		{name: "directive id with provider", keys: []string{anthropicKey, openaiKey}, want: Want{Tier: "fast", ID: "openai/gpt-5"}, ref: "openai/gpt-5"},
		{name: "directive id and no key at all", want: Want{ID: "claude-haiku-4-5"}, says: "set one of"},
		{name: "directive id at a local provider", ollama: true, want: Want{Tier: "fast", ID: "claude-haiku-4-5"},
			ref: "ollama/qwen3:4b", says: "tier fast"},

		{name: "override goes before the directive", keys: []string{anthropicKey, openaiKey},
			want: Want{Override: "openai/gpt-5-mini", Tier: "general", ID: "claude-haiku-4-5"}, ref: "openai/gpt-5-mini"},
		{name: "override by tier", keys: []string{anthropicKey}, want: Want{Override: "haiku", ID: "gpt-5"}, ref: "anthropic/claude-haiku-4-5"},
		{name: "override by provider and tier", keys: []string{anthropicKey, openaiKey}, want: Want{Override: "openai/haiku"}, ref: "openai/gpt-5-mini"},
		{name: "override by id", keys: []string{anthropicKey, openaiKey}, want: Want{Override: "gpt-5"}, ref: "openai/gpt-5"},
		{name: "override by a new id of a provider", keys: []string{openaiKey}, want: Want{Override: "openai/gpt-99"}, ref: "openai/gpt-99"},
		{name: "override by an unknown id", keys: []string{openaiKey}, want: Want{Override: "gpt-99-x"}, ref: "", says: "named as provider/model"},
		{name: "override without key", keys: []string{openaiKey}, want: Want{Override: "anthropic/claude-haiku-4-5"}, says: "set ANTHROPIC_API_KEY (anthropic)"},
		{name: "override without any key", want: Want{Override: "anthropic/claude-haiku-4-5"}, says: "set ANTHROPIC_API_KEY (anthropic)"},
		{name: "override of a gateway's id", keys: []string{openrouterKey}, want: Want{Override: "anthropic/claude-haiku-4.5"},
			ref: "openrouter/anthropic/claude-haiku-4.5"},
		{name: "override through a gateway", keys: []string{anthropicKey, openrouterKey}, want: Want{Override: "openrouter/anthropic/claude-haiku-4.5"},
			ref: "openrouter/anthropic/claude-haiku-4.5"},
		{name: "override to a local provider", want: Want{Override: "ollama/llama3:8b"}, ref: "ollama/llama3:8b"},
		{name: "override to the script", want: Want{Override: "scripted/scripted-fast"}, ref: "scripted/scripted-fast"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := usual()
			s.agent.Provider.Default = test.standard
			r := registry(s, test.ollama, test.keys...)
			got, err := r.Choose(t.Context(), test.want)
			if test.ref == "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("got %s, error %v; want an error with %q", got.Ref(), err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Ref() != test.ref || !strings.Contains(strings.Join(got.Warnings, "\n"), test.says) || (test.says == "") != (len(got.Warnings) == 0) {
				t.Errorf("got %s with warnings %q, want %s with %q", got.Ref(), got.Warnings, test.ref, test.says)
			}
			again, err := r.Choose(t.Context(), Want{Override: got.Ref()})
			if err != nil || again.Ref() != got.Ref() || again.Model != got.Model {
				t.Errorf("%s as override gives %s, %v", got.Ref(), again.Ref(), err)
			}
		})
	}
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	var none *NoProviderError
	if _, err := registry(usual(), false).Choose(t.Context(), Want{}); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
	var unknown *UnknownModelError
	if _, err := registry(usual(), true).Choose(t.Context(), Want{Override: "x"}); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
}

// TestBlankKey: a variable with blanks alone is one that is not set.
func TestBlankKey(t *testing.T) {
	t.Parallel()
	r := NewSource(func(name string) string { return map[string]string{"ANTHROPIC_API_KEY": " \t"}[name] }).With(usual())
	r.answers = func(context.Context, string) bool { return false }
	if got, err := r.Choose(t.Context(), Want{}); !errors.As(err, new(*NoProviderError)) {
		t.Errorf("chose %s, %v", got.Ref(), err)
	}
}

// TestNoProviderAdvice: what the message advises counts at once, which settings of the
// project do not.
func TestNoProviderAdvice(t *testing.T) {
	t.Parallel()
	text := (&NoProviderError{Variables: []string{"KEY (lab)"}}).Error()
	if !strings.Contains(text, "provider.default of the user's settings") || strings.Contains(text, ".ai/config") {
		t.Error(text)
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	r := registry(usual(), false, "OPENAI_API_KEY")
	if _, ok, err := r.Fallback(t.Context(), Want{}); ok || err != nil {
		t.Errorf("without a fallback: %v, %v", ok, err)
	}
	if got, ok, err := r.Fallback(t.Context(), Want{Fallback: "fast"}); !ok || err != nil || got.Ref() != "openai/gpt-5-mini" {
		t.Errorf("got %s, %v, %v", got.Ref(), ok, err)
	}
	if _, ok, err := r.Fallback(t.Context(), Want{Fallback: "anthropic/claude-haiku-4-5"}); ok || err == nil {
		t.Errorf("without its key: %v, %v", ok, err)
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	dollars := func(d float64) *float64 { return &d }
	for _, test := range []struct {
		name     string
		provider config.Provider
		id       string
		want     llm.Model
	}{
		{"catalogue", config.Provider{Name: "anthropic"}, "claude-haiku-4-5",
			llm.Model{ContextWindow: 200_000, Priced: true, Price: llm.Price{Input: 1e6, Output: 5e6, CacheRead: 100_000, CacheWrite: 1_250_000}}},
		{"unknown", config.Provider{Name: "anthropic"}, "claude-99", llm.Model{}},
		{"local", config.Provider{Name: "ollama", Local: true}, "qwen3:8b", llm.Model{Priced: true}},
		{"file adds", config.Provider{Name: "mine", Models: map[string]config.ModelOverride{
			"m": {ContextWindow: 1000, MaxOutputTokens: 10, Input: dollars(0.1), Output: dollars(0.0000001)},
		}}, "m", llm.Model{ContextWindow: 1000, MaxOutputTokens: 10, Priced: true,
			Price: llm.Price{Input: 100_000, Output: 1, CacheRead: 100_000, CacheWrite: 100_000}}},
		{"half a price is none", config.Provider{Name: "mine", Models: map[string]config.ModelOverride{"m": {Input: dollars(1)}}},
			"m", llm.Model{}},
		{"file overrides", config.Provider{Name: "anthropic", Models: map[string]config.ModelOverride{"claude-haiku-4-5": {Output: dollars(4)}}},
			"claude-haiku-4-5",
			llm.Model{ContextWindow: 200_000, Priced: true, Price: llm.Price{Input: 1e6, Output: 4e6, CacheRead: 100_000, CacheWrite: 1_250_000}}},
		{"a longer window costs the long price where a call is longer", config.Provider{Name: "openai", Models: map[string]config.ModelOverride{"gpt-5.4": {ContextWindow: 1_000_000}}},
			"gpt-5.4",
			llm.Model{ContextWindow: 1_000_000, Priced: true, Price: llm.Price{Input: 5e6, Output: 22_500_000, CacheRead: 500_000, CacheWrite: 5e6,
				UpTo: 271_999, Short: llm.Rates{Input: 2_500_000, Output: 15e6, CacheRead: 250_000, CacheWrite: 2_500_000}}}},
		{"a price of one's own holds for every length", config.Provider{Name: "openai", Models: map[string]config.ModelOverride{"gpt-5.4": {ContextWindow: 1_000_000, Input: dollars(3)}}},
			"gpt-5.4",
			llm.Model{ContextWindow: 1_000_000, Priced: true, Price: llm.Price{Input: 3e6, Output: 22_500_000, CacheRead: 500_000, CacheWrite: 5e6}}},
	} {
		test.want.ID = test.id
		got, err := registry(usual(), false).model(test.provider, test.id)
		if err != nil || got != test.want {
			t.Errorf("%s: got %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	bad := config.Provider{Models: map[string]config.ModelOverride{"m": {Input: dollars(-1), Output: dollars(1)}}}
	if _, err := registry(usual(), false).model(bad, "m"); err == nil {
		t.Error("a negative price was accepted")
	}
}

func TestMaxOutput(t *testing.T) {
	t.Parallel()
	s := usual()
	p := s.providers["openai"]
	p.Models = map[string]config.ModelOverride{"gpt-5": {MaxOutputTokens: 100}}
	p.AllowUnpriced, p.ToolUse = true, config.ToolUseText
	s.providers["openai"] = p
	got, err := registry(s, false, "OPENAI_API_KEY").Choose(t.Context(), Want{})
	if err != nil || got.MaxOutput != 100 || !got.AllowUnpriced || got.ToolUse != config.ToolUseText {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestKeyVariables(t *testing.T) {
	t.Parallel()
	want := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENROUTER_API_KEY"}
	if got := registry(usual(), false).KeyVariables(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLacksKey(t *testing.T) {
	t.Parallel()
	r := registry(usual(), false, "OPENAI_API_KEY")
	for ref, want := range map[string]bool{
		"anthropic/claude-sonnet-5": true, "openai/gpt-5": false, "ollama/qwen3:4b": false,
		"nobody/x": false, "gpt-5": false, "": false, // the thread finds out
	} {
		if got := r.LacksKey(ref); got != want {
			t.Errorf("LacksKey(%q) = %t", ref, got)
		}
	}
}

// TestChooseElsewhere: a thread that others run goes to a provider of theirs, and to the one
// that is named whoever has its key.
func TestChooseElsewhere(t *testing.T) {
	t.Parallel()
	const openaiKey = "OPENAI_API_KEY"
	for _, test := range []struct {
		name     string
		keys     []string // here
		able     []string // there
		standard string
		want     Want
		ref      string // empty: an error
	}{
		{name: "the first of the order that they can use", keys: []string{openaiKey}, able: []string{"anthropic", "openrouter"}, ref: "anthropic/claude-sonnet-5"},
		{name: "not the one whose key is here alone", keys: []string{openaiKey}, able: []string{"openrouter"}, ref: "openrouter/anthropic/claude-sonnet-5"},
		{name: "none of theirs: the one whose key is here", keys: []string{openaiKey}, ref: "openai/gpt-5"},
		{name: "a key nowhere", ref: "anthropic/claude-sonnet-5"},
		{name: "the default", standard: "openai", able: []string{"anthropic"}, ref: "openai/gpt-5"},
		{name: "a provider", want: Want{Provider: "openai"}, able: []string{"anthropic"}, ref: "openai/gpt-5"},
		{name: "a provider on their machine", want: Want{Provider: "ollama"}, able: []string{"ollama"}, ref: "ollama/qwen3:8b"},
		{name: "the caller's model", want: Want{Override: "openai/gpt-5-mini"}, ref: "openai/gpt-5-mini"},
		{name: "an id that one of them has", want: Want{ID: "gpt-5"}, able: []string{"openai"}, ref: "openai/gpt-5"},
		{name: "an id at the provider that can serve it", want: Want{ID: "gpt-5", Tier: "fast"}, able: []string{"anthropic", "openai"}, ref: "openai/gpt-5"},
		{name: "nobody knows the model", want: Want{Override: "no-such-model"}},
		{name: "nobody knows the provider", want: Want{Provider: "nobody"}},
	} {
		s := usual()
		s.agent.Provider.Default = test.standard
		got, err := registry(s, false, test.keys...).Elsewhere(test.able).Choose(t.Context(), test.want)
		if test.ref == "" && err == nil || test.ref != "" && (err != nil || got.Ref() != test.ref) {
			t.Errorf("%s: %s, %v", test.name, got.Ref(), err)
		}
	}
}

func TestCanServe(t *testing.T) {
	t.Parallel()
	r := registry(usual(), false, "OPENAI_API_KEY")
	for ref, want := range map[string]bool{
		"anthropic/claude-sonnet-5": false, "openai/gpt-5": true, "ollama/qwen3:4b": true, "nobody/x": false, "": false,
	} {
		if got := r.CanServe(ref); got != want {
			t.Errorf("CanServe(%q) = %t", ref, got)
		}
	}
}
