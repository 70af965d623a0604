package config_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

func TestProviderMerges(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"project/agent/providers/anthropic.yaml": "tiers: {high: my-model}\naliases: {boss: high}\nheaders: {X-Team: a}\n" +
			"models:\n  my-model: {context_window: 1000, input: 0, output: 2.5}\n",
	})
	p, warnings, err := loader.Read().Provider("anthropic")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	if p.Name != "anthropic" || p.API != config.APIAnthropic || p.APIKeyEnv != "ANTHROPIC_API_KEY" || p.BaseURLEnv != "ANTHROPIC_BASE_URL" {
		t.Errorf("shipped values lost: %+v", p)
	}
	if p.Tiers["high"] != "my-model" || p.Tiers["fast"] == "" || p.Aliases["boss"] != "high" || p.Headers["X-Team"] != "a" {
		t.Errorf("not merged: %+v", p)
	}
	m := p.Models["my-model"]
	if m.ContextWindow != 1000 || m.Input == nil || *m.Input != 0 || m.Output == nil || *m.Output != 2.5 || m.CacheRead != nil {
		t.Errorf("model %+v", m)
	}
}

func TestOwnProvider(t *testing.T) {
	t.Parallel()
	loader, _ := spaces(t, map[string]string{
		"user/agent/providers/lab.yaml":      "api: openai\nbase_url: http://127.0.0.1:8000/v1\nlocal: true\n",
		"user/agent/providers/notes.txt":     "",
		"project/agent/providers/openai.yml": "api: nonsense",
	})
	p, _, err := loader.Read().Provider("lab")
	if err != nil {
		t.Fatal(err)
	}
	if p.ToolUse != config.ToolUseNative || !p.Local {
		t.Errorf("got %+v", p)
	}
	names, err := loader.Read().ProviderNames()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"anthropic", "gemini", "lab", "ollama", "openai", "openrouter", "scripted"}; !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
}

func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	loader, _ := spaces(t, map[string]string{"project/secret.yaml": "api: openai"})
	for _, name := range []string{"azure", "", "../../secret", "a/b", "open\x00ai", "anthropic.yaml"} {
		_, _, err := loader.Read().Provider(name)
		var missing *config.NotFoundError
		if !errors.As(err, &missing) {
			t.Errorf("%q: error %v, want *NotFoundError", name, err)
			continue
		}
		if missing.Provider != name || !slices.Contains(missing.Known, "anthropic") {
			t.Errorf("%q: got %+v", name, missing)
		}
	}
}

func TestProviderFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, content string
		line          int
		reason        string
	}{
		{"no api", "tiers: {fast: x}", 0, "api: missing"},
		{"unknown api", "api: grpc", 1, "must be one of"},
		{"no script", "api: scripted", 0, "script: missing"},
		{"no address", "api: openai", 0, "base_url: missing"},
		{"address without scheme", "api: openai\nbase_url: localhost:80\n", 2, "base_url"},
		{"alias of nothing", "api: anthropic\ntiers: {fast: x}\naliases:\n  low: slow\n", 4, `no tier "slow"; there are fast`},
		{"price as text", "api: anthropic\nmodels:\n  a/b c~d:\n    input: cheap\n", 4, "models.(a name of 7 bytes).input: expected number"},
		{"negative price", "api: anthropic\nmodels: {m: {output: -1}}\n", 2, ">= 0"},
		{"key in place of its variable", "api: anthropic\napi_key_env: sk-1234\n", 2, "api_key_env"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			loader, roots := spaces(t, map[string]string{"user/agent/providers/mine.yaml": tt.content})
			_, _, err := loader.Read().Provider("mine")
			assertError(t, err, filepath.Join(roots.User, ".ai/config/agent/providers/mine.yaml"), tt.line, tt.reason)
		})
	}
}

func FuzzProvider(f *testing.F) {
	f.Add("api: openai\nbase_url: http://x\ntiers: {fast: a}\naliases: {low: fast}")
	f.Add("models: {'a/b': {input: 1e3, output: 0x10}}\napi: anthropic")
	f.Fuzz(func(t *testing.T, content string) {
		p, _, err := system(t, "agent/providers/fuzzed.yaml", content).Read().Provider("fuzzed")
		var e *config.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error without file and line: %v", err)
		}
		for _, m := range p.Models {
			if err == nil && m.Input != nil && *m.Input < 0 {
				t.Error("a negative price passed the check")
			}
		}
	})
}

// TestTextStaysText merges text that YAML would take for something else without
// its quotes.
func TestTextStaysText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"true", "null", "~", "12", "1e3", "0x10", "2026-01-02", "<<", "- a", "a: b", "# a", " a ", "a\nb", "é", "*a", "!!int 1"} {
		quoted := strconv.QuoteToGraphic(text)
		loader, _ := spaces(t, map[string]string{
			"user/agent/providers/mine.yaml": "api: scripted\nscript: " + quoted + "\ntiers: {" + quoted + ": " + quoted + "}\n",
		})
		p, warnings, err := loader.Read().Provider("mine")
		noWarnings(t, warnings, err)
		if p.Script != text || p.Tiers[text] != text {
			t.Errorf("%s: script %q, tiers %q", quoted, p.Script, p.Tiers)
		}
	}
}
