package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// shape is what of a schema says which values a key can have.
type shape struct {
	Pattern string
	Type    string   `json:"type"`
	Enum    []any    `json:"enum"`
	Minimum *float64 `json:"minimum"`
	Above   *float64 `json:"exclusiveMinimum"`
	Maximum *float64 `json:"maximum"`

	Ref        string            `json:"$ref"`
	Defs       map[string]*shape `json:"$defs"`
	Properties map[string]*shape `json:"properties"`
}

func shapeOf(t *testing.T, schema string) *shape {
	text, err := schemaFiles.ReadFile("schema/" + schema)
	if err != nil {
		t.Fatal(err)
	}
	var s shape
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// draw makes settings that hold to a schema, each key with a chance of one half.
func (s *shape) draw(r *rapid.T, defs map[string]*shape, label string) any {
	if s.Ref != "" {
		return defs[filepath.Base(s.Ref)].draw(r, defs, label)
	}
	switch {
	case len(s.Properties) > 0:
		drawn := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
			_, short := s.Properties[strings.TrimPrefix(key, maxPrefix)]
			if short && strings.HasPrefix(key, maxPrefix) || key == defaultsKey || key == retries {
				continue // another spelling
			}
			if rapid.Bool().Draw(r, label+key+"?") {
				if value := s.Properties[key].draw(r, defs, label+key+"."); value != nil {
					drawn[key] = value
				}
			}
		}
		return drawn
	case len(s.Enum) > 0:
		return rapid.SampledFrom(s.Enum).Draw(r, label)
	case s.Type == "boolean":
		return rapid.Bool().Draw(r, label)
	case s.Type == "integer":
		return rapid.Int64Range(int64(*s.Minimum), int64(*s.Maximum)).Draw(r, label)
	case s.Type == "number":
		least := 0.001
		if s.Minimum != nil {
			least = *s.Minimum
		}
		return rapid.Float64Range(least, *s.Maximum).Draw(r, label)
	case s.Type == "string":
		return rapid.StringMatching(cmp.Or(s.Pattern, `[a-z]{1,8}`)).Draw(r, label)
	}
	return nil // lists and what is for people
}

// TestStrangersOnlyTighten: whatever the files of a project say that its user has
// not accepted, no value that holds becomes looser than it is without them.
func TestStrangersOnlyTighten(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{agentKind, coordinationKind, resilienceKind, riskKind, toolsKind, memoryKind} {
		t.Run(k.schema, func(t *testing.T) {
			t.Parallel()
			rules, err := rulesOf(k.schema)
			if err != nil {
				t.Fatal(err)
			}
			dir, shape := t.TempDir(), shapeOf(t, k.schema)
			roots := resolve.Roots{User: filepath.Join(dir, "user"), Project: filepath.Join(dir, "project"), System: os.DirFS("../system/ai")}
			rapid.Check(t, func(r *rapid.T) {
				for _, root := range []string{roots.User, roots.Project} {
					writeDrawn(r, root, k, shape.draw(r, shape.Defs, filepath.Base(root)+"."))
				}
				with, err := New(roots).Read().load(k)
				if err != nil {
					r.Fatal(err)
				}
				without, err := New(resolve.Roots{User: roots.User, System: roots.System}).Read().load(k)
				if err != nil {
					r.Fatal(err)
				}
				s := settling{}
				s.walk(without.merged(), with.merged(), rules, nil, func(rule *rule, holds, says any, at []string) {
					if problem := looser(rule, holds, says); problem != "" {
						r.Errorf("%s: %v became %v: %s", dotted(at), holds, says, problem)
					}
				})
			})
		})
	}
}

func writeDrawn(r *rapid.T, root string, k kind, values any) {
	text, err := json.Marshal(values)
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, ".ai", "config", "agent"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(root, ".ai", "config", k.files[len(k.files)-1]), text, 0o600)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// looser says what is wrong with a change of a value that holds, in other words
// than the program.
func looser(r *rule, holds, says any) string {
	position := func(v any) float64 {
		for i, word := range r.Enum {
			if word == v {
				return float64(i)
			}
		}
		switch v := v.(type) {
		case int:
			return float64(v)
		case float64:
			return v
		case bool:
			return map[bool]float64{true: 1}[v]
		}
		return -1
	}
	from, to := position(holds), position(says)
	if r.Zero != nil && from == 0 { // as many as the machine bears
		from = 32
	}
	switch r.Untrusted {
	case mayChange:
		return ""
	case mayLower:
		if holds == nil || to > from || r.Zero != nil && to == 0 {
			return "not lower"
		}
	case mayRaise:
		if holds == nil || to < from {
			return "not higher"
		}
	default:
		return fmt.Sprintf("a stranger may do %q", r.Untrusted)
	}
	return ""
}
