package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// said is all that a thread reads of its settings, without what only says where it
// is written.
func said(t *testing.T, from interface {
	Agent() (config.Agent, []string, error)
	Coordination() (config.Coordination, []string, error)
	Resilience() (config.Resilience, []string, error)
	ErrorRules() (config.ErrorRules, []string, error)
	Hooks() (config.Hooks, []string, error)
	ProviderNames() ([]string, error)
	Provider(name string) (config.Provider, []string, error)
},
) map[string]any {
	t.Helper()
	all := map[string]any{}
	add := func(name string, value any, err error) {
		all[name] = value
		if err != nil {
			all[name] = "fault: " + err.Error()
		}
	}
	agent, _, err := from.Agent()
	add("agent", agent, err)
	coordination, _, err := from.Coordination()
	add("coordination", coordination, err)
	resilience, _, err := from.Resilience()
	add("resilience", resilience, err)
	rules, warnings, err := from.ErrorRules()
	for i, p := range rules.Patterns {
		add(fmt.Sprint("condition of rule ", i), p.Match.String(), nil)
		rules.Patterns[i].Match = config.ErrorPattern{}.Match
	}
	add("rules", rules, err)
	add("rule warnings", warnings, nil)
	hooks, _, err := from.Hooks()
	add("hooks", nil, err)
	for layer, list := range map[string][]config.Hook{"user": hooks.User, "project": hooks.Project, "builtin": hooks.Builtin, "infra": hooks.Infra} {
		for i, h := range list {
			text, err := json.Marshal(h.Hook) // whose Wrap is a pointer
			add(fmt.Sprint(layer, " hook ", i), fmt.Sprintf("%s %s %s:%d", text, h.Condition, h.Path, h.LineOf()), err)
		}
	}
	names, err := from.ProviderNames()
	add("providers", names, err)
	for _, name := range append(names, "nobody") {
		p, _, err := from.Provider(name)
		add("provider "+name, p, err)
	}
	return all
}

// A thread is handed all that its starter has read, and nothing of what becomes of the
// files afterwards.
func TestDecided(t *testing.T) {
	t.Parallel()
	roots := resolve.Roots{Project: t.TempDir(), User: t.TempDir(), System: shipped()}
	user := func(name, content string) {
		path := filepath.Join(roots.User, ".ai", "config", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	user("agent/resilience.yaml", "limits: {turns: 7, max_override: {turns: 9}, daily_spend: 3}\nstall_seconds: 0.5\n")
	user("agent/hooks.yaml", projectHooks)
	user("agent/error_classification.yaml", `patterns:
  - id: mine
    match: {any: [{path: status_code, op: in, value: [429, 529.5]}, {not: {path: headers.x, op: exists}}]}
    category: transient
    retryable: true
    retry_policy: {type: use_header, base: 3, fallback: {type: fixed, delay: 0.25}}
`)
	user("agent/providers/mine.yaml", "api: openai\nbase_url: https://mine.example\ntiers: {fast: m}\n"+
		"models: {m: {input: 0.5, output: 2, vision: false}}\nheaders: {X: \"a=b\"}\n")
	user("agent/providers/broken.yaml", "api: none\n")
	loader := config.New(roots)
	data, err := loader.Read().Decide()
	if err != nil {
		t.Fatal(err)
	}
	before := said(t, loader.Read())
	user("agent/resilience.yaml", "limits: {turns: 8}\n")
	user("agent/providers/mine.yaml", "base_url: https://other.example\n")
	decided, err := loader.ReadDecided(data)
	if err != nil {
		t.Fatal(err)
	}
	after := said(t, decided)
	for name, want := range before {
		if got := after[name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if len(after) != len(before) || !strings.HasPrefix(fmt.Sprint(after["provider broken"]), "fault: ") {
		t.Errorf("%d values, want %d; %v", len(after), len(before), after["provider broken"])
	}
}

// Settings of a program that knows other keys are no settings of this one, and
// text that is no JSON is none of any.
func TestReadDecided(t *testing.T) {
	t.Parallel()
	loader := config.New(resolve.Roots{System: shipped()})
	data, err := loader.Read().Decide()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), `"form":"`) + len(`"form":"`)
	other := string(data[:at]) + "0" + string(data[at:])
	if _, err := loader.ReadDecided([]byte(other)); !errors.Is(err, config.ErrOtherForm) {
		t.Errorf("of another form: %v", err)
	}
	for _, garbage := range []string{"", "{", `{"form":5}`, string(data[:len(data)-9])} {
		if _, err := loader.ReadDecided([]byte(garbage)); err == nil || errors.Is(err, config.ErrOtherForm) {
			t.Errorf("%.30q: %v", garbage, err)
		}
	}
	if config.HashDecided(data) == config.HashDecided([]byte(other)) {
		t.Error("one hash for two")
	}
}

// TestDecidedAnew: what one loader has decided before is not said again of files that
// are others by now.
func TestDecidedAnew(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, map[string]string{"user/agent/agent.yaml": "threads: {max_running: 3}\n"})
	seen := map[string]string{}
	decide := func(after string) {
		t.Helper()
		data, err := loader.Read().Decide()
		if err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
		fresh, err := config.New(roots).Read().Decide()
		if err != nil || !bytes.Equal(data, fresh) {
			t.Errorf("after %s:\n%s\nwant\n%s (%v)", after, data, fresh, err)
		}
		if before, known := seen[string(data)]; known {
			t.Errorf("after %s as after %s", after, before)
		}
		seen[string(data)] = after
	}
	decide("nothing")
	for _, change := range [][2]string{
		{"user/agent/agent.yaml", "threads: {max_running: 4}\n"},
		{"user/agent/tools.yaml", "execution: {confine: required}\n"},
		{"user/agent/hooks.yaml", "hooks: [{id: a, event: turn_end, action: {primary: search, params: {query: x}}}]\n"},
		{"user/agent/hook_conditions.yaml", "infra_hooks: []\n"},
		{"user/agent/providers/lab.yaml", usersLab},
		{"project/agent/hook_conditions.yaml", "infra_hooks: []\n"},
		{"project/agent/agent.yaml", "threads: {max_running: 2}\n"},
	} {
		space, name, _ := strings.Cut(change[0], "/")
		path := filepath.Join(map[string]string{"user": roots.User, "project": roots.Project}[space], ".ai", "config", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(change[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		decide(change[0])
	}
}
