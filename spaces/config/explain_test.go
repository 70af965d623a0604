package config_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// valueOf finds an explained value by its dotted key.
func valueOf(t testing.TB, values []config.Value, key string) config.Value {
	t.Helper()
	for _, v := range values {
		if strings.Join(v.Key, ".") == key {
			return v
		}
	}
	t.Fatalf("no %s in %v", key, values)
	return config.Value{}
}

func TestExplainOrigins(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"user/agent/agent.yaml":              "# mine\nprovider: {default: openai}\nthreads:\n  tool_concurrency: 2\n  term_seconds: 9\n",
		"project/agent/agent.yaml":           "threads:\n  tool_concurrency: 8\nprovider:\n  order: [gemini]\n  trusted_hosts: [evil.example]\n",
		"project/coordination.yaml":          "# old\ncoordination:\n  wait_threads:\n    max_timeout: 60\n  continuation:\n    summary_limit_overrides: {turns: 2}\n",
		"user/agent/coordination.yaml":       "wait_threads: {max_timeout: 50}\n",
		"user/agent/resilience.yaml":         "limits:\n  turns: 3\n  max_spend: 2\n",
		"project/agent/resilience.yaml":      "on_limit: {action: ask}\n",
		"project/agent/capability_risk.yaml": "risk_levels: {elevated: {policy: block}}\n",
		"user/agent/providers/my.yaml":       "api: openai\nbase_url: http://127.0.0.1:1/v1\nheaders: {}\n",
	})
	tests := []struct {
		settings, key string
		value         any
		space         item.Space
		path          string // its end
		line          int
	}{
		{"agent", "provider.default", "openai", item.User, "user/.ai/config/agent/agent.yaml", 2},
		{"agent", "provider.order", []any{"gemini"}, item.Project, "project/.ai/config/agent/agent.yaml", 4},
		{"agent", "threads.tool_concurrency", 8, item.Project, "project/.ai/config/agent/agent.yaml", 2},
		{"agent", "threads.term_seconds", 9, item.User, "user/.ai/config/agent/agent.yaml", 5},
		{"agent", "threads.orphans", "cancel", item.System, "system:config/agent/agent.yaml", 21},
		{"coordination", "wait_threads.max_timeout", 60, item.Project, "project/.ai/config/coordination.yaml", 4},
		{"coordination", "continuation.summary_limit_overrides.turns", 2, item.Project, "project/.ai/config/coordination.yaml", 6},
		{"coordination", "continuation.trigger_threshold", 0.9, item.System, "system:config/agent/coordination.yaml", 17},
		{"coordination", "wait_threads.default_timeout", 60, item.Project, "project/.ai/config/coordination.yaml", 4},
		{"resilience", "limits.turns", 3, item.User, "user/.ai/config/agent/resilience.yaml", 2},
		{"resilience", "limits.spend", 2, item.User, "user/.ai/config/agent/resilience.yaml", 3},
		{"resilience", "on_limit.action", "ask", item.Project, "project/.ai/config/agent/resilience.yaml", 1},
		{"resilience", "on_limit.deadline_seconds", 300, item.System, "system:config/agent/resilience.yaml", 26},
		{"capability_risk", "risk_levels.elevated.policy", "block", item.Project, "project/.ai/config/agent/capability_risk.yaml", 1},
		{"capability_risk", "risk_levels.safe.policy", "allow", item.System, "system:config/agent/capability_risk.yaml", 11},
		{"providers/my", "headers", map[string]any{}, item.User, "user/.ai/config/agent/providers/my.yaml", 3},
		{"providers/my", "tool_use", "native", "", "", 0},
	}
	for _, tt := range tests {
		explained, err := loader.Read().Explain(tt.settings)
		if err != nil {
			t.Fatalf("%s: %v", tt.settings, err)
		}
		v := valueOf(t, explained.Values, tt.key)
		if !reflect.DeepEqual(v.Value, tt.value) || v.Space != tt.space || v.Line != tt.line ||
			!strings.HasSuffix(v.Path, filepath.FromSlash(tt.path)) {
			t.Errorf("%s of %s: %v from %s %s:%d; want %v from %s %s:%d",
				tt.key, tt.settings, v.Value, v.Space, v.Path, v.Line, tt.value, tt.space, tt.path, tt.line)
		}
		if !slices.IsSortedFunc(explained.Values, func(a, b config.Value) int { return slices.Compare(a.Key, b.Key) }) {
			t.Errorf("%s: not sorted: %v", tt.settings, explained.Values)
		}
	}
	explained, err := loader.Read().Explain("agent")
	if err != nil || len(explained.Warnings) != 1 || !strings.Contains(explained.Warnings[0], "trusted_hosts") {
		t.Errorf("warnings %q, %v", explained.Warnings, err)
	}
}

func TestExplainFaults(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, map[string]string{
		"project/agent/agent.yaml":        "threads: 4",
		"user/agent/providers/odd.yaml":   "base_url: http://127.0.0.1:1\n",
		"user/agent/providers/wrong.yaml": "api: 1\n",
	})
	explained, err := loader.Read().Explain("agent")
	assertError(t, err, filepath.Join(roots.Project, ".ai/config/agent/agent.yaml"), 1, "expected object")
	if len(explained.Values) > 0 {
		t.Errorf("values of a broken file: %v", explained.Values)
	}
	explained, err = loader.Read().Explain("providers/odd")
	var e *config.Error
	if !errors.As(err, &e) || valueOf(t, explained.Values, "base_url").Value != "http://127.0.0.1:1" {
		t.Errorf("merged settings that make no sense: %v, %v", explained.Values, err)
	}
	if explained, err = loader.Read().Explain("providers/wrong"); err == nil || len(explained.Values) > 0 {
		t.Errorf("a provider's broken file: %v, %v", explained.Values, err)
	}
	var unknown *config.UnknownSettingsError
	for _, name := range []string{"agen", "providers/../agent", "", "providers/"} {
		if _, err := loader.Read().Explain(name); !errors.As(err, &unknown) || !slices.Contains(unknown.Known, "providers/odd") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := loader.Read().Explain("agen"); !errors.As(err, &unknown) || unknown.Nearest != "agent" {
		t.Errorf("agen: nearest %v", unknown)
	}
}

// The explained values put together again are what the loader decodes, and each
// stands in the file and line it is said to.
func TestExplainIsWhatDecodeGives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		files := map[string]string{}
		for _, space := range []string{"user", "project"} {
			var b strings.Builder
			for _, section := range []struct {
				name string
				keys map[string]string
			}{
				{"threads", map[string]string{"tool_concurrency": "%d", "max_running": "%d", "orphans": "keep", "term_seconds": "%d.5"}},
				{"provider", map[string]string{"default": "p%d", "order": "[a%d, b]"}},
			} {
				var lines []string
				for _, key := range slices.Sorted(maps.Keys(section.keys)) {
					if rapid.Bool().Draw(r, space+" has "+key) {
						value := section.keys[key]
						if strings.Contains(value, "%") {
							value = fmt.Sprintf(value, rapid.IntRange(1, 64).Draw(r, key))
						}
						lines = append(lines, "  "+key+": "+value+"\n")
					}
				}
				if len(lines) > 0 {
					b.WriteString("# a comment\n" + section.name + ":\n" + strings.Join(rapid.Permutation(lines).Draw(r, "lines"), ""))
				}
			}
			files[space+"/agent/agent.yaml"] = b.String()
		}
		loader, _ := spaces(t, files)
		explained, err := loader.Read().Explain("agent")
		if err != nil {
			r.Fatal(err)
		}
		want, _, err := loader.Read().Agent()
		if err != nil {
			r.Fatal(err)
		}
		var got config.Agent
		again, err := yaml.Marshal(rebuilt(explained.Values))
		if err == nil {
			err = yaml.Unmarshal(again, &got)
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			r.Fatalf("explained %+v, %v\ndecoded   %+v", got, err, want)
		}
		for _, v := range explained.Values {
			standsThere(r, v)
		}
	})
}

func rebuilt(values []config.Value) map[string]any {
	all := map[string]any{}
	for _, v := range values {
		at := all
		for _, key := range v.Key[:len(v.Key)-1] {
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		at[v.Key[len(v.Key)-1]] = v.Value
	}
	return all
}

// standsThere checks that the line of a value has its key and value.
func standsThere(t interface{ Errorf(string, ...any) }, v config.Value) {
	if v.Space == item.System {
		return // TestExplainOrigins looks at some of them
	}
	content, err := os.ReadFile(v.Path)
	lines := strings.Split(string(content), "\n")
	if err != nil || v.Line < 1 || v.Line > len(lines) {
		t.Errorf("%v: no line %d in %s (%v)", v.Key, v.Line, v.Path, err)
		return
	}
	line, last := strings.TrimSpace(lines[v.Line-1]), v.Key[len(v.Key)-1]
	want, err := yaml.Marshal(v.Value)
	var said map[string]any
	if err == nil {
		err = yaml.Unmarshal([]byte(line), &said)
	}
	got, _ := yaml.Marshal(said[last])
	if err != nil || string(got) != string(want) {
		t.Errorf("%v is %s; line %d says %q (%v)", v.Key, want, v.Line, line, err)
	}
}
