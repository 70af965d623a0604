package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/provider"
)

// modelsAt lists models on a day, with settings of the user's and variables.
func modelsAt(t *testing.T, day string, files map[string]string, env map[string]string, only string, all bool) modelsJSON {
	t.Helper()
	r := registryAt(t, day, files, env)
	found, err := modelsOf(t.Context(), r, only, all)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func registryAt(t *testing.T, day string, files, env map[string]string) *provider.Registry {
	t.Helper()
	dir := realDir(t)
	for name, text := range files {
		path := filepath.Join(makeDir(t, dir, "user", ".ai", "config", "agent", "providers"), name+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"USER_SPACE": filepath.Join(dir, "user")}
	for name, value := range env {
		vars[name] = value
	}
	sys := testSystem(makeDir(t, dir, "project"), vars)
	sys.Now = func() time.Time {
		now, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Error(err)
		}
		return now
	}
	return newDoctor(sys, options{}, filepath.Join(dir, "project")).providers
}

func TestModels(t *testing.T) {
	t.Parallel()
	found := modelsAt(t, "2026-11-22", map[string]string{
		"lab": "api: openai\nbase_url: https://lab.example/v1\ntiers: {fast: free, max: strange}\n" +
			"models: {free: {context_window: 9000, input: 0.5, output: 1, vision: false}, other: {input: 1, output: 1, max_output_tokens: 100}}\n",
		"vault":  "api: openai\nbase_url: https://vault.example/v1\napi_key_command: [/bin/false]\ntiers: {fast: v}\nallow_unpriced: true\n",
		"broken": "api: openai\n",
	}, map[string]string{"OPENAI_API_KEY": "sk"}, "", false)
	got := map[string]modelJSON{}
	for _, m := range found.Models {
		got[m.Model] = m
	}
	if m := got["lab/free"]; !m.Usable || m.Price == nil || *m.Price != (dollarRate{0.5, 1, 0.5, 0.5}) || m.PricedOn != "" || m.Vision || m.Window != 9000 || !slices.Equal(m.Tiers, []string{"fast"}) || m.Wire != "chat" {
		t.Errorf("a model of one's own: %+v", m)
	}
	if m := got["lab/strange"]; m.Usable || m.Price != nil || !strings.Contains(m.WhyNot, "price is not known") || !strings.Contains(m.Try, "allow_unpriced") {
		t.Errorf("one without a price: %+v", m)
	}
	if m := got["lab/other"]; !m.Usable || m.Output != 100 || len(m.Tiers) != 0 {
		t.Errorf("one of no tier: %+v", m)
	}
	if m := got["vault/v"]; !m.Usable || m.Price != nil { // the command is not run to list it
		t.Errorf("one with a key from a command: %+v", m)
	}
	if m := got["anthropic/claude-haiku-4-5"]; m.Usable || !strings.Contains(m.WhyNot, "ANTHROPIC_API_KEY is not set") || m.PricedOn == "" || m.Wire != "messages" {
		t.Errorf("one without its key: %+v", m)
	}
	if m := got["openai/gpt-6-sol"]; !m.Usable || m.Wire != "responses" || m.Price.CacheWrite != 2.5 {
		t.Errorf("one of OpenAI's: %+v, %+v", m, m.Price)
	}
	if m := got["gemini/gemini-3.1-pro-preview"]; m.Price == nil || m.Short == nil || m.Price.Input != 4 || m.Short.Input != 2 || m.Short.Output != 12 || m.Short.UpTo/1000 != 200 {
		t.Errorf("one whose long calls cost more: %+v, %+v, %+v", m, m.Price, m.Short)
	}
	if found.Default != "openai/gpt-6-sol" || found.Prices.Stale || len(found.Warnings) != 1 || !strings.Contains(found.Warnings[0], "broken: ") {
		t.Errorf("%q, %+v, %q", found.Default, found.Prices, found.Warnings)
	}
}

func TestModelsOfCatalogue(t *testing.T) {
	t.Parallel()
	few := modelsAt(t, "2026-11-22", nil, nil, "anthropic", false)
	all := modelsAt(t, "2026-11-22", nil, nil, "anthropic", true)
	if len(few.Models) != 4 || len(all.Models) < 10 {
		t.Errorf("%d models, %d with those of the catalogue", len(few.Models), len(all.Models))
	}
	if _, err := modelsOf(t.Context(), registryAt(t, "2026-11-22", nil, nil), "nobody", false); err == nil || !strings.Contains(err.Error(), "known are anthropic") {
		t.Errorf("got %v", err)
	}
}

// TestOldPrices: prices of the catalogue that are more than 180 days old are told of
// where models are listed, by the doctor and once by those who start threads; prices of
// one's own are not.
func TestOldPrices(t *testing.T) {
	t.Parallel()
	for day, old := range map[string]bool{"2026-11-22": false, "2027-03-22": false, "2027-03-23": true} {
		found := modelsAt(t, day, nil, nil, "anthropic", false)
		if found.Prices.Stale != old || (len(found.Warnings) > 0) != old {
			t.Errorf("%s: %+v, %q", day, found.Prices, found.Warnings)
		}
	}
	own := map[string]string{"lab": "api: openai\nbase_url: https://lab.example/v1\ntiers: {fast: m}\nmodels: {m: {input: 1, output: 1}}\n"}
	if found := modelsAt(t, "2028-01-01", own, nil, "lab", false); found.Prices.Stale {
		t.Errorf("prices of one's own: %+v", found.Prices)
	}
	r := registryAt(t, "2028-01-01", own, map[string]string{"ANTHROPIC_API_KEY": "sk"})
	for i, want := range []bool{true, false} {
		choice, err := r.Choose(t.Context(), provider.Want{Override: "anthropic/fast"})
		if err != nil {
			t.Fatal(err)
		}
		if told := r.StaleWarning(choice); (told != "") != want {
			t.Errorf("start %d is told %q", i, told)
		}
	}
}
