package config_test

import (
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

func loaderOfShipped() *config.Loader { return config.New(resolve.Roots{System: shipped()}) }

// noWarnings fails on what a shipped file must not have.
func noWarnings(t *testing.T, warnings []string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
}

// assertNoZero fails for options that have no shipped default.
func assertNoZero(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			assertNoZero(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
		return
	}
	// Zero on purpose: chosen by what there is, or not for everybody.
	chosen := []string{".DailySpend", ".Provider.Default", ".Threads.MaxRunning", ".Threads.TTL", ".Integrity.AcceptLegacyDirectives", ".RiskQuestions.Ask"}
	if v.IsZero() && !slices.Contains(chosen, path) {
		t.Errorf("%s has no shipped default", path)
	}
}

// TestShippedHoldToTheirSchemas reads the shipped files as a user's, since as
// shipped ones they are not checked.
func TestShippedHoldToTheirSchemas(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	err := fs.WalkDir(shipped(), "config", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(shipped(), path)
		files["user/"+strings.TrimPrefix(path, "config/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	loader, _ := spaces(t, files)
	names, err := loader.Read().SettingsNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		explained, err := loader.Read().Explain(name)
		noWarnings(t, explained.Warnings, err)
		users := 0
		for _, value := range explained.Values {
			if value.Space == item.User {
				users++
			}
		}
		if users == 0 {
			t.Errorf("nothing of %s was read from the user's space", name)
		}
	}
}

func TestShippedAgent(t *testing.T) {
	t.Parallel()
	got, warnings, err := loaderOfShipped().Read().Agent()
	noWarnings(t, warnings, err)
	assertNoZero(t, reflect.ValueOf(got), "")
	if want := []string{"anthropic", "openai", "gemini", "openrouter"}; !slices.Equal(got.Provider.Order, want) {
		t.Errorf("order %v, want %v", got.Provider.Order, want)
	}
}

func TestShippedCoordination(t *testing.T) {
	t.Parallel()
	got, warnings, err := loaderOfShipped().Read().Coordination()
	noWarnings(t, warnings, err)
	want := config.Coordination{
		WaitThreads:         config.WaitSettings{DefaultTimeout: 600, MaxTimeout: 3600, Clients: map[string]float64{}},
		TranscriptIntegrity: config.TranscriptStrict,
		Continuation: config.Continuation{
			TriggerThreshold: 0.9, ResumeCeilingTokens: 16000, SummaryLimitOverrides: item.LimitSet{},
			SummaryMaxTokens: 4000, MaxChain: 20, Limits: config.LimitsRemaining, Approval: config.ApprovalNone,
		},
		Notes: config.Notes{PerTurn: 8, BytesPerTurn: 16384, Ends: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestShippedResilience(t *testing.T) {
	t.Parallel()
	got, warnings, err := loaderOfShipped().Read().Resilience()
	noWarnings(t, warnings, err)
	assertNoZero(t, reflect.ValueOf(got), "")
	want := item.LimitSet{"turns": 15, "tokens": 200000, "spend": 0.50, "duration_seconds": 1800, "spawns": 20, "depth": 5}
	if !reflect.DeepEqual(got.Limits, want) {
		t.Errorf("limits %v, want %v", got.Limits, want)
	}
	for _, name := range item.LimitNames() {
		if _, ok := got.Limits[name]; !ok {
			t.Errorf("limit %s has no default", name)
		}
	}
	if got.FirstTokenSeconds != 600 {
		t.Errorf("first_token_seconds %v, want 600", got.FirstTokenSeconds)
	}
	if got.StallSeconds != 120 {
		t.Errorf("stall_seconds %v, want 120", got.StallSeconds)
	}
}

func TestShippedProviders(t *testing.T) {
	t.Parallel()
	loader := loaderOfShipped()
	names, err := loader.Read().ProviderNames()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"anthropic", "gemini", "ollama", "openai", "openrouter", "scripted"}; !slices.Equal(names, want) {
		t.Fatalf("providers %v, want %v", names, want)
	}
	agent, _, err := loader.Read().Agent()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p, warnings, err := loader.Read().Provider(name)
		noWarnings(t, warnings, err)
		for _, tier := range []string{"fast", "general", "high", "max"} {
			if p.Tiers[tier] == "" {
				t.Errorf("%s has no tier %s", name, tier)
			}
		}
		for alias, tier := range map[string]string{
			"low": "fast", "haiku": "fast", "sonnet": "general", "opus": "high", "orchestrator": "high",
		} {
			if p.Aliases[alias] != tier {
				t.Errorf("%s: alias %s is %q, want %q", name, alias, p.Aliases[alias], tier)
			}
		}
		if slices.Contains(agent.Provider.Order, name) && p.APIKeyEnv == "" {
			t.Errorf("%s stands in the order but no key tells whether it is usable", name)
		}
		if p.APIKeyEnv == "" && !p.Local && p.API != config.APIScripted {
			t.Errorf("%s needs no key and is not local", name)
		}
	}
}

func TestShippedScriptedIsPriced(t *testing.T) {
	t.Parallel()
	p, _, err := loaderOfShipped().Read().Provider("scripted")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"scripted-fast", "scripted-general"} {
		m := p.Models[model]
		if m.Input == nil || m.Output == nil || m.CacheRead == nil || m.CacheWrite == nil || m.ContextWindow != 200000 {
			t.Errorf("%s is not fully described: %+v", model, m)
		}
	}
}

func TestSystemSpaceMustHoldDefaults(t *testing.T) {
	t.Parallel()
	loader := config.New(resolve.Roots{})
	if _, _, err := loader.Read().Resilience(); err == nil {
		t.Error("limits without defaults were accepted")
	}
	if _, _, err := loader.Read().Coordination(); err == nil {
		t.Error("coordination without defaults was accepted")
	}
}
