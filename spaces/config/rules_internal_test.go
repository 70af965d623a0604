package config

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestEveryKeySaysWhatProjectsMay: no key of any schema is left to chance.
func TestEveryKeySaysWhatProjectsMay(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(schemaFiles, "schema/*.json")
	if err != nil || len(names) < 7 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		rules, err := rulesOf(strings.TrimPrefix(name, "schema/"))
		if err != nil {
			t.Fatal(err)
		}
		leavesOf(rules, nil, func(at []string, r *rule) {
			if !slices.Contains([]direction{mayLower, mayRaise, mayChange, mayNever}, r.Untrusted) {
				t.Errorf("%s: %s has x-untrusted %q", name, dotted(at), r.Untrusted)
			}
			if r.UserOnly && r.Untrusted == mayChange {
				t.Errorf("%s: %s is the user's and free at the same time", name, dotted(at))
			}
		})
	}
}

// leavesOf visits the rules of the keys that hold a value.
func leavesOf(r *rule, at []string, visit func(at []string, r *rule)) {
	if !r.isMap() || len(at) > 12 {
		visit(at, r)
		return
	}
	keys := slices.Sorted(maps.Keys(r.Properties))
	if r.others != nil {
		keys = append(keys, "any")
	}
	for _, key := range keys {
		leavesOf(r.below(key), below(at, key), visit)
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	rules := func(text string) *rule {
		var r rule
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return &r
	}
	const words = `"enum": ["low", "middle", "high"]`
	for _, tt := range []struct {
		schema      string
		holds, says any
		want        bool
	}{
		{`{"x-untrusted": "lower"}`, 5, 4, true},
		{`{"x-untrusted": "lower"}`, 5, 4.5, true},
		{`{"x-untrusted": "lower"}`, 5, 5.0, true},
		{`{"x-untrusted": "lower"}`, 5, 6, false},
		{`{"x-untrusted": "lower"}`, nil, 0, false},
		{`{"x-untrusted": "lower"}`, 5, nil, false},
		{`{"x-untrusted": "lower"}`, 5, "4", false},
		{`{"x-untrusted": "lower"}`, true, false, true},
		{`{"x-untrusted": "lower"}`, false, true, false},
		{`{"x-untrusted": "higher"}`, false, true, true},
		{`{"x-untrusted": "higher"}`, 5, 6, true},
		{`{"x-untrusted": "higher"}`, 5, 4, false},
		{`{"x-untrusted": "lower", ` + words + `}`, "middle", "low", true},
		{`{"x-untrusted": "lower", ` + words + `}`, "middle", "high", false},
		{`{"x-untrusted": "lower", ` + words + `}`, "middle", "none", false},
		{`{"x-untrusted": "higher", ` + words + `}`, "middle", "high", true},
		{`{"x-untrusted": "lower", "x-zero": 32}`, 0, 32, true},
		{`{"x-untrusted": "lower", "x-zero": 32}`, 0, 33, false},
		{`{"x-untrusted": "lower", "x-zero": 32}`, 5, 0, false},
		{`{"x-untrusted": "lower", "x-zero": 32}`, 0, 0, true},
		{`{"x-untrusted": "free"}`, "a", nil, true},
		{`{"x-untrusted": "free"}`, nil, []any{"a"}, true},
		{`{"x-untrusted": "never"}`, 5, 4, false},
		{`{"x-untrusted": "never"}`, []any{1}, []any{1}, true},
		{`{"x-untrusted": "sometimes"}`, 5, 4, false},
		{`{}`, 5, 4, false},
	} {
		if got := rules(tt.schema).allows(tt.holds, tt.says); got != tt.want {
			t.Errorf("%s: %v for %v: %t, want %t", tt.schema, tt.says, tt.holds, got, tt.want)
		}
	}
	if (*rule)(nil).allows(1, 2) {
		t.Error("a key without a rule may be changed")
	}
}

// TestPatternsAreDescribed: what a text must be like is said in words, not with a pattern.
func TestPatternsAreDescribed(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(schemaFiles, "schema/*.json")
	if err != nil {
		t.Fatal(err)
	}
	patterns := 0
	var visit func(name string, value any)
	visit = func(name string, value any) {
		switch v := value.(type) {
		case map[string]any:
			if pattern, is := v["pattern"].(string); is {
				patterns++
				if words, _ := v["description"].(string); words == "" {
					t.Errorf("%s: nothing describes %s", name, pattern)
				}
			}
			for _, below := range v {
				visit(name, below)
			}
		case []any:
			for _, below := range v {
				visit(name, below)
			}
		}
	}
	for _, name := range names {
		text, err := schemaFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		visit(name, schema)
	}
	if patterns < 20 {
		t.Errorf("%d patterns were looked at", patterns)
	}
}
