package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

func TestSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, before, key, value, after string }{
		{"empty", "", "provider.default", "openai", "provider:\n  default: openai\n"},
		{"only a comment", "# mine\n", "limits.spend", "2", "# mine\nlimits:\n  spend: 2\n"},
		{"comments stay", "# mine\nlimits: # all\n  # money\n  spend: 1 # dollars\n  turns: 3\n", "limits.spend", "2.50",
			"# mine\nlimits: # all\n  # money\n  spend: 2.50 # dollars\n  turns: 3\n"},
		{"flow", "limits: {turns: 3}\n", "limits.spend", "2", "limits: {turns: 3, spend: 2}\n"},
		{"an empty map", "limits: {}\n", "limits.spend", "2", "limits:\n  spend: 2\n"},
		{"no value", "limits:\n", "limits.spend", "2", "limits:\n  spend: 2\n"},
		{"a list", "", "provider.order", "[openai, gemini]", "provider:\n  order: [openai, gemini]\n"},
		{"nothing", "provider: {default: x}\n", "provider.default", "", "provider: {default: \"\"}\n"},
		{"a dot in a key", "", `models."gpt-5.4".input`, "1", "models:\n  gpt-5.4:\n    input: 1\n"},
		{"a value like the key", "description: limits\n", "limits.turns", "3", "description: limits\nlimits:\n  turns: 3\n"},
	} {
		key, err := config.ParseKey(tt.key)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := config.Set([]byte(tt.before), key, tt.value); err != nil || string(got) != tt.after {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.name, err, got, tt.after)
		}
	}
	if _, err := config.Set([]byte("limits: 5\n"), []string{"limits", "turns"}, "3"); err == nil {
		t.Error("a key below a number")
	}
	if _, err := config.Set(nil, []string{"limits"}, "[1"); err == nil {
		t.Error("a value that is no YAML")
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a": {"a"}, "a.b": {"a", "b"}, `"a.b".c`: {"a.b", "c"}, `a."b.c"`: {"a", "b.c"}, `a-b`: {"a-b"},
		"": nil, ".": nil, "a.": nil, ".a": nil, `"a`: nil, `"a"b`: nil, `""`: nil, "a..b": nil,
	} {
		got, err := config.ParseKey(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) || err != nil && !errors.Is(err, config.ErrNoKey) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestSetIsRead: what is set is what is read, whatever stood there.
func TestSetIsRead(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-z]{1,3}`)
	rapid.Check(t, func(r *rapid.T) {
		content := []byte(nil)
		said := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(r, "times") {
			outer, inner, value := word.Draw(r, "outer"), word.Draw(r, "inner"), word.Draw(r, "value")
			after, err := config.Set(content, []string{outer, inner}, "'"+value+"'")
			if err != nil {
				r.Fatal(err)
			}
			content, said[outer+"."+inner] = after, value
		}
		var read map[string]map[string]string
		if err := yaml.Unmarshal(content, &read); err != nil {
			r.Fatal(err)
		}
		for key, value := range said {
			outer, inner, _ := strings.Cut(key, ".")
			if read[outer][inner] != value {
				r.Fatalf("%s is %q, want %q in\n%s", key, read[outer][inner], value, content)
			}
		}
	})
}

func TestCheckFile(t *testing.T) {
	t.Parallel()
	if _, err := config.CheckFile("resilience", "r.yaml", []byte("limits: {turns: many}\n")); err == nil || !strings.Contains(err.Error(), "r.yaml:1: limits.turns") {
		t.Errorf("%v", err)
	}
	if warnings, err := config.CheckFile("providers/mine", "p.yaml", []byte("colour: red\n")); err != nil || len(warnings) != 1 {
		t.Errorf("%q, %v", warnings, err)
	}
	var unknown *config.UnknownSettingsError
	if _, err := config.CheckFile("resilence", "r.yaml", nil); !errors.As(err, &unknown) || unknown.Nearest != "resilience" {
		t.Errorf("%v", err)
	}
}
