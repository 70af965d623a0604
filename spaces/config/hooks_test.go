package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

const projectHooks = `category: agent
hooks:
  - id: inject
    event: thread_started
    condition:
      any:
        - {path: directive, op: contains, value: api}
        - path: cost.turns
          op: gte
          value: 3
    position: after
    wrap: false
    timeout: 2.5
    description: why
    action:
      primary: fetch
      item_type: knowledge
      item_id: project/${directive}
  - id: many
    event: resolve_extends
    actions:
      - set_extends: a/b
      - primary: execute
        item_id: x
        params: {n: 3, list: [a, {b: true}]}
`

func TestHooks(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"project/agent/hooks.yaml": projectHooks,
		"user/agent/hooks.yaml":    "hooks: [{id: u, event: error, action: {primary: execute, item_id: y}}]\n",
	})
	hooks, warnings, err := loader.Read().Hooks()
	noWarnings(t, warnings, err)
	no := false
	want := []item.Hook{
		{
			ID: "inject", Event: "thread_started", Position: "after", Wrap: &no, Timeout: 2.5, Description: "why", Line: 3,
			Actions: []item.Action{{Primary: "fetch", ItemType: "knowledge", ItemID: "project/${directive}"}},
		},
		{
			ID: "many", Event: "resolve_extends", Line: 19,
			Actions: []item.Action{
				{SetExtends: "a/b"},
				{Primary: "execute", ItemID: "x", Params: map[string]any{"n": 3, "list": []any{"a", map[string]any{"b": true}}}},
			},
		},
	}
	if len(hooks.Project) != len(want) || len(hooks.User) != 1 || hooks.User[0].ID != "u" {
		t.Fatalf("hooks %+v", hooks)
	}
	for i, h := range hooks.Project {
		if !reflect.DeepEqual(h.Hook, want[i]) {
			t.Errorf("got\n%+v\nwant\n%+v", h.Hook, want[i])
		}
		if !strings.HasSuffix(h.Path, filepath.FromSlash("project/.ai/config/agent/hooks.yaml")) {
			t.Errorf("path %s", h.Path)
		}
	}
	inject, many := hooks.Project[0], hooks.Project[1]
	for directive, fires := range map[string]bool{"my-api": true, "other": false} {
		if inject.Condition.Eval(map[string]any{"directive": directive}) != fires {
			t.Errorf("the condition is %t of %s", !fires, directive)
		}
	}
	if !many.Condition.Always() {
		t.Error("a hook without condition has one")
	}
	if line := many.LineOf("actions", "1", "params"); line != 25 {
		t.Errorf("the params are on line %d", line)
	}
	if line := many.LineOf("position"); line != 19 {
		t.Errorf("the position, which is not written, is on line %d", line)
	}
}

func TestHooksOfTheSystem(t *testing.T) {
	t.Parallel()
	hook := func(id string) string {
		return "[{id: " + id + ", event: error, action: {primary: execute, item_id: x}}]\n"
	}
	content := "infra_hooks: " + hook("last") + "context_hooks: " + hook("second") + "builtin_hooks: " + hook("first")
	hooks, warnings, err := system(t, "agent/hook_conditions.yaml", content).Read().Hooks()
	noWarnings(t, warnings, err)
	var ids []string
	for _, h := range append(hooks.Builtin, hooks.Infra...) {
		ids = append(ids, h.ID)
	}
	if got := strings.Join(ids, " "); got != "first second last" || len(hooks.Infra) != 1 {
		t.Errorf("hooks %s", got)
	}

	hooks, warnings, err = loaderOfShipped().Read().Hooks()
	noWarnings(t, warnings, err)
	if len(hooks.User)+len(hooks.Project) > 0 {
		t.Errorf("hooks out of nowhere: %+v", hooks)
	}
	if _, _, err = config.New(resolve.Roots{System: fstest.MapFS{}}).Read().Hooks(); err != nil {
		t.Errorf("a system space without hooks: %v", err)
	}
	_, _, err = system(t, "agent/hook_conditions.yaml", "infra_hooks: {id: x}\n").Read().Hooks()
	if err == nil || !strings.Contains(err.Error(), "hook_conditions.yaml:1: infra_hooks: want a list") {
		t.Errorf("no list: %v", err)
	}
}

func TestHookWarnings(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"project/agent/hooks.yaml": "hooks:\n- id: a\n  event: error\n  layer: 4\n  contidion: {path: x, op: exists}\n" +
			"  action:\n    primary: execute\n    item_id: x\n    parms: {}\nhoooks: []\n",
		"project/agent/hook_conditions.yaml": "infra_hooks: [{id: evil, event: error}]\n",
		"user/agent/hook_conditions.yaml":    "}{",
	})
	hooks, warnings, err := loader.Read().Hooks()
	if err != nil || len(hooks.Infra)+len(hooks.Builtin) != len(mustShipped(t)) || len(hooks.Project) != 1 {
		t.Fatalf("%+v, %v", hooks, err)
	}
	for _, want := range []string{
		`project/.ai/config/agent/hooks.yaml:5: hooks.0.contidion: unknown key; did you mean "condition"?`,
		`project/.ai/config/agent/hooks.yaml:9: hooks.0.action.parms: unknown key; did you mean "params"?`,
		`project/.ai/config/agent/hooks.yaml:10: hoooks: unknown key; did you mean "hooks"?`,
		`project/.ai/config/agent/hooks.yaml:4: hooks.0.layer: not used; the layer of a hook follows from the file it stands in`,
		`user/.ai/config/agent/hook_conditions.yaml: not used; this file is read from the system space only`,
		`project/.ai/config/agent/hook_conditions.yaml: not used; this file is read from the system space only`,
	} {
		if !strings.Contains(filepath.ToSlash(strings.Join(warnings, "\n")), want) {
			t.Errorf("no warning %s in\n%s", want, strings.Join(warnings, "\n"))
		}
	}
	if len(warnings) != 6 {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

// mustShipped are the hooks of the shipped file.
func mustShipped(t *testing.T) []config.Hook {
	t.Helper()
	hooks, _, err := loaderOfShipped().Read().Hooks()
	if err != nil {
		t.Fatal(err)
	}
	return append(hooks.Builtin, hooks.Infra...)
}

func TestHookErrors(t *testing.T) {
	t.Parallel()
	const action = "  action: {primary: execute, item_id: x}\n"
	tests := []struct {
		name, content string
		line          int
		reason        string
	}{
		{"no list", "hooks: {id: a}\n", 1, "expected array"},
		{"no hook", "hooks:\n- 3\n", 2, "expected object"},
		{"no id", "hooks:\n- event: error\n" + action, 2, "missing properties: 'id'"},
		{"no event", "hooks:\n- id: a\n" + action, 2, "missing properties: 'event'"},
		{"id with blanks", "hooks:\n- event: error\n  id: a b\n" + action, 3, "want a word without spaces"},
		{"no action", "hooks:\n- id: a\n  event: error\n", 2, "action: missing"},
		{"both actions", "hooks:\n- id: a\n  event: error\n" + action + "  actions: [{set_extends: b}]\n", 5, "keep one"},
		{"no actions", "hooks:\n- id: a\n  event: error\n  actions: []\n", 4, "minimum 1"},
		{"primary", "hooks:\n- id: a\n  event: error\n  action:\n    primary: exec\n", 5, "value must be one of"},
		{"params", "hooks:\n- id: a\n  event: error\n  action:\n    params: [1]\n", 5, "expected object"},
		{"wrap", "hooks:\n- id: a\n  event: error\n  wrap: \"no\"\n" + action, 4, "expected boolean"},
		{"position", "hooks:\n- id: a\n  event: error\n  position: top\n" + action, 4, "value must be one of"},
		{"timeout", "hooks:\n- id: a\n  event: error\n  timeout: 0\n" + action, 4, "must be > 0"},
		{"condition", "hooks:\n- id: a\n  event: error\n  condition: yes\n" + action, 4, "expected object"},
		{
			"op in condition",
			"hooks:\n- id: a\n  event: error\n" + action + "  condition:\n    any:\n    - {path: a, op: exists}\n    - path: b\n      op: huh\n      value: 1\n",
			9, `hooks.0.condition.any.1.op: "huh" is unknown`,
		},
		{
			"regex in condition",
			"hooks:\n- id: a\n  event: error\n" + action + "  condition:\n    not:\n      path: a\n      op: regex\n      value: (\n",
			9, "missing closing",
		},
		{"no value", "hooks:\n- id: a\n  event: error\n" + action + "  condition: {path: a, op: eq, value: }\n", 5, "needs a value"},
		{"malformed", "hooks:\n- id: [\n", 3, "malformed YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			loader, _ := spaces(t, map[string]string{"user/agent/hooks.yaml": tt.content})
			_, _, err := loader.Read().Hooks()
			var wrong *config.Error
			if !errors.As(err, &wrong) || wrong.Line != tt.line || !strings.Contains(wrong.Reason, tt.reason) {
				t.Errorf("got %v; want line %d, %s", err, tt.line, tt.reason)
			}
		})
	}
}

// FuzzHooks reads any bytes as a file of hooks: they are hooks or an error with
// a place, and nothing else.
func FuzzHooks(f *testing.F) {
	f.Add(projectHooks)
	f.Add("hooks: [{id: a, event: b, condition: {not: {path: a, op: exists}}, action: {set_extends: x}}]")
	f.Add("hooks:\n- &a {id: a, event: b, actions: [{params: {<<: {x: 1}}}]}\n- *a\n")
	f.Add("builtin_hooks: [1, {id: 3, wrap: x}]\ninfra_hooks: [{action: [], actions: {}}]\n")
	loader, roots := spaces(f, map[string]string{"project/agent/hooks.yaml": ""})
	file := filepath.Join(roots.Project, ".ai", "config", "agent", "hooks.yaml")
	f.Fuzz(func(t *testing.T, content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		checkFuzzed(t, loader)
		checkFuzzed(t, config.New(resolve.Roots{System: fstest.MapFS{
			"config/agent/hook_conditions.yaml": &fstest.MapFile{Data: []byte(content)},
		}}))
	})
}

func checkFuzzed(t *testing.T, loader *config.Loader) {
	t.Helper()
	hooks, _, err := loader.Read().Hooks()
	var wrong *config.Error
	if err != nil && !errors.As(err, &wrong) {
		t.Fatalf("%T: %v", err, err)
	}
	for _, h := range hooks.Project {
		if h.ID == "" || len(h.Actions) == 0 || h.Line == 0 {
			t.Fatalf("half a hook: %+v", h)
		}
		h.Condition.Eval(map[string]any{"a": []any{1}})
	}
}
