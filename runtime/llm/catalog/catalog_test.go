package catalog

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func load(t *testing.T) *Catalog {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func day(s string) time.Time {
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return d
}

func TestLookup(t *testing.T) {
	t.Parallel()
	c := load(t)
	haiku := llm.Price{Input: 1_000_000, Output: 5_000_000, CacheRead: 100_000, CacheWrite: 1_250_000}
	for _, test := range []struct {
		provider, model, day string
		want                 llm.Model
		found                bool
	}{
		{"anthropic", "claude-haiku-4-5-20251001", "2026-10-01",
			llm.Model{ContextWindow: 200_000, Price: haiku, Priced: true}, true},
		{"Anthropic", "Claude-Haiku-4-5", "2026-10-01",
			llm.Model{ContextWindow: 200_000, Price: haiku, Priced: true}, true},
		{"openai", "o3", "2025-06-09",
			llm.Model{ContextWindow: 200_000, Price: llm.Price{Input: 10e6, Output: 40e6, CacheRead: 500_000, CacheWrite: 10e6}, Priced: true}, true},
		{"openai", "o3", "2025-06-10",
			llm.Model{ContextWindow: 200_000, Price: llm.Price{Input: 2e6, Output: 8e6, CacheRead: 500_000, CacheWrite: 2e6}, Priced: true}, true},
		// The window ends where the price rises.
		{"gemini", "gemini-2.5-pro", "2026-10-01",
			llm.Model{ContextWindow: 200_000, Price: llm.Price{Input: 1_250_000, Output: 10e6, CacheRead: 125_000, CacheWrite: 1_250_000}, Priced: true}, true},
		// The highest price of the day.
		{"deepseek", "deepseek-chat", "2026-10-01",
			llm.Model{ContextWindow: 64_000, Price: llm.Price{Input: 270_000, Output: 1_100_000, CacheRead: 70_000, CacheWrite: 270_000}, Priced: true}, true},
		{"openrouter", "agentica-org/deepcoder-14b-preview:free", "2026-10-01", llm.Model{Priced: true}, true},
		// Billed by request as well, so the price is not known.
		{"perplexity", "sonar", "2026-10-01", llm.Model{}, true},
		{"anthropic", "no-such-model", "2026-10-01", llm.Model{}, false},
		{"nobody", "claude-haiku-4-5", "2026-10-01", llm.Model{}, false},
		{"", "", "2026-10-01", llm.Model{}, false},
	} {
		got, found := c.Lookup(test.provider, test.model, day(test.day))
		if found {
			test.want.ID = test.model
		}
		if test.want.ContextWindow == 0 {
			got.ContextWindow = 0
		}
		if got != test.want || found != test.found {
			t.Errorf("Lookup(%q, %q, %s) = %+v, %v; want %+v", test.provider, test.model, test.day, got, found, test.want)
		}
	}
}

func TestLookupLong(t *testing.T) {
	t.Parallel()
	got, found := load(t).LookupLong("openai", "gpt-5.4", day("2026-10-01"))
	want := llm.Price{Input: 5e6, Output: 22_500_000, CacheRead: 500_000, CacheWrite: 5e6, UpTo: 271_999,
		Short: llm.Rates{Input: 2_500_000, Output: 15e6, CacheRead: 250_000, CacheWrite: 2_500_000}}
	if !found || got.ContextWindow != 1_050_000 || got.Price != want {
		t.Errorf("got %+v", got)
	}
}

func TestOffers(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, test := range []struct {
		provider, model string
		want            bool
	}{
		{"anthropic", "claude-3-5-haiku-20241022", true},
		{"anthropic", "gpt-5", false},
		{"azure", "claude-haiku-4-5", false}, // it is priced there, at Anthropic's price
		{"nobody", "gpt-5", false},
	} {
		if got := c.Offers(test.provider, test.model); got != test.want {
			t.Errorf("Offers(%q, %q) = %v", test.provider, test.model, got)
		}
	}
	if _, found := c.Lookup("azure", "claude-haiku-4-5", day("2026-10-01")); !found {
		t.Error("azure does not fall back on anthropic")
	}
}

// TestEmbeddings: models for embeddings, which bill what they are given alone, have a
// price where their vendor's API is.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, test := range []struct {
		address, provider, model string
		input                    int64
	}{
		{"https://api.openai.com/v1", "openai", "text-embedding-3-small", 20_000},
		{"https://api.openai.com/v1", "openai", "text-embedding-3-large", 130_000},
		{"https://me.openai.azure.com/openai/v1", "azure", "text-embedding-3-small", 20_000},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "google", "gemini-embedding-001", 150_000},
		{"https://api.mistral.ai/v1", "mistral", "mistral-embed", 100_000},
		{"https://example.org/api.openai.com", "", "text-embedding-3-small", 0},
		{"http://127.0.0.1:4000", "", "text-embedding-3-small", 0},
	} {
		provider := c.At(test.address)
		got, _ := c.Lookup(provider, test.model, day("2026-10-01"))
		if provider != test.provider || got.Price.Input != test.input || got.Priced != (test.input > 0) {
			t.Errorf("%s %s: %q %+v", test.address, test.model, provider, got)
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	source, version, date := load(t).Info()
	if source == "" || version == "" {
		t.Errorf("source %q, version %q", source, version)
	}
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		t.Error(err)
	}
}

// TestData guards what the generator promises.
func TestData(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, p := range c.head.Providers {
		if p.Match != nil {
			checkRule(t, p.ID, *p.Match)
		}
		if _, err := regexp.Compile(p.API); err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
		if len(p.models()) == 0 {
			t.Errorf("%s: no models", p.ID)
		}
		for _, e := range p.models() {
			where := p.ID + "/" + e.ID
			checkRule(t, where, e.Match)
			last := ""
			for i, price := range e.Prices {
				if price.From < last || i > 0 && price.From == "" {
					t.Errorf("%s: prices are out of order", where)
				}
				last = price.From
				for k, rate := range price.Rates {
					if rate < 0 || price.Long != nil && price.Long.Rates[k] < rate {
						t.Errorf("%s: rates %v, long %v", where, price.Rates, price.Long)
					}
				}
				if price.Long != nil && price.Long.Above <= 0 {
					t.Errorf("%s: a long price above %d tokens", where, price.Long.Above)
				}
			}
		}
	}
}

func checkRule(t *testing.T, where string, r rule) {
	t.Helper()
	members := 0
	for _, set := range []bool{
		r.Or != nil, r.And != nil, r.Not != nil, r.Equals != nil, r.StartsWith != nil, r.EndsWith != nil, r.Contains != nil, r.Regex != nil,
	} {
		if set {
			members++
		}
	}
	if members != 1 {
		t.Errorf("%s: a rule with %d members", where, members)
	}
	if r.Regex != nil {
		if _, err := regexp.Compile(*r.Regex); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	if r.Not != nil {
		checkRule(t, where, *r.Not)
	}
	for _, list := range [][]rule{r.Or, r.And} {
		for _, part := range list {
			checkRule(t, where, part)
		}
	}
}

func TestRule(t *testing.T) {
	t.Parallel()
	s := func(text string) *string { return &text }
	for _, test := range []struct {
		rule rule
		name string
		want bool
	}{
		{rule{Equals: s("A")}, "a", true},
		{rule{Equals: s("a")}, "ab", false},
		{rule{StartsWith: s("a")}, "ab", true},
		{rule{EndsWith: s("a")}, "ab", false},
		{rule{Contains: s("b")}, "abc", true},
		{rule{Regex: s(`^a\d$`)}, "a1", true},
		{rule{Regex: s(`(`)}, "(", false},
		{rule{Not: &rule{Equals: s("a")}}, "b", true},
		{rule{Or: []rule{{Equals: s("a")}, {Equals: s("b")}}}, "b", true},
		{rule{And: []rule{{Contains: s("a")}, {Contains: s("b")}}}, "b", false},
		{rule{And: []rule{{Contains: s("a")}, {Contains: s("b")}}}, "ab", true},
		{rule{}, "a", false},
	} {
		if got := test.rule.holds(test.name); got != test.want {
			t.Errorf("%+v holds(%q) = %v", test.rule, test.name, got)
		}
	}
}

func TestDated(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"claude-haiku-4-5-20251001": "claude-haiku-4-5-2025-10-01",
		"x-20251001:free":           "x-2025-10-01:free",
		"x-20259901":                "x-20259901",
		"x-202510011":               "x-202510011",
	} {
		if got := dated(in); got != want {
			t.Errorf("dated(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzLookup(f *testing.F) {
	c, err := Load()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("google", "gemini-3-pro-preview")
	f.Add("azure", "claude-sonnet-4-5-20250929")
	f.Add("openrouter", "openai/gpt-6-sol:batch")
	f.Fuzz(func(t *testing.T, provider, model string) {
		m, found := c.Lookup(provider, model, day("2026-10-01"))
		long, foundLong := c.LookupLong(provider, model, day("2026-10-01"))
		if found != foundLong || m.Price.MaxInput() > long.Price.MaxInput() || m.Price.Output > long.Price.Output || long.ContextWindow != 0 && m.ContextWindow > long.ContextWindow {
			t.Errorf("short %+v (%v), long %+v (%v)", m, found, long, foundLong)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRead: each provider has the line of its models, and nothing is of nobody.
func TestRead(t *testing.T) {
	t.Parallel()
	const head, models = `{"providers":[{"id":"a"},{"id":"b"}]}` + "\n", "[{\"id\":\"m\"}]\n"
	c, err := read([]byte(head + models + "[]\n"))
	if err != nil || !slices.Equal(c.Models("a"), []string{"m"}) || c.Models("b") != nil {
		t.Errorf("%v, %+v", err, c)
	}
	for _, damaged := range []string{"", "{", head, head + models, head + models + "[]", head + models + models + models} {
		if c, err := read([]byte(damaged)); err == nil {
			t.Errorf("%q is %+v", damaged, c.head)
		}
	}
}
