package hook_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

const control = hook.ControlID

func TestDefinitions(t *testing.T) {
	t.Parallel()
	set := ofXML(t, `<hook id="a" event="error" position="after" wrap="false" timeout="1.5"><execute item_type="tool" item_id="x"/></hook>
<hook event="limit"><execute item_type="tool" item_id="x"/></hook>
<hook><when>cost exists</when><execute item_type="tool">x</execute></hook>`)
	all := set.All()
	a, b, c := all[0], all[1], all[2]
	if a.ID != "a" || a.Position != hook.After || a.Wrap || a.Timeout != 1500*time.Millisecond || a.Source() != "d.md:5" {
		t.Errorf("as written: %+v", a)
	}
	if b.ID != "d#2" || b.Position != hook.Before || !b.Wrap || b.Timeout != hook.DefaultTimeout || b.Source() != "d.md:6" {
		t.Errorf("by default: %+v", b)
	}
	if c.ID != "d#3" || c.Event != "" || c.Condition.Always() || c.Exempt() {
		t.Errorf("short form: %+v", c)
	}
}

// TestConditionAndWhen: both hold.
func TestConditionAndWhen(t *testing.T) {
	t.Parallel()
	h := ofXML(t, `<hook event="error"><condition path="a" op="eq" value="1"/><when>b == 2</when><execute item_id="x"/></hook>`).All()[0]
	for _, data := range []map[string]any{{"a": 1}, {"b": 2}, {"a": 1, "b": 3}} {
		if h.Condition.Eval(data) {
			t.Errorf("true of %v", data)
		}
	}
	if !h.Condition.Eval(map[string]any{"a": 1, "b": 2}) {
		t.Error("false where both hold")
	}
}

func TestBadDirectiveHooks(t *testing.T) {
	t.Parallel()
	const action = `<execute item_type="tool" item_id="x"/>`
	decide := func(event, verdict string) string {
		return `<hook id="a" event="` + event + `"><execute item_id="` + control + `"><param name="action" value="` + verdict + `"/></execute></hook>`
	}
	tests := []struct{ name, xml, reason string }{
		{"event", `<hook id="a" event="eror">` + action + `</hook>`, `event "eror" is unknown; did you mean "error"?`},
		{"event far off", `<hook id="a" event="x">` + action + `</hook>`, "there are resolve_extends, build_system_prompt"},
		{"position", `<hook id="a" event="error" position="top">` + action + `</hook>`, `position "top"`},
		{"timeout", `<hook id="a" event="error" timeout="1e300">` + action + `</hook>`, "timeout is 1e+300; a hook may take 1000000 seconds"},
		{"required elsewhere", `<hook id="a" event="after_step" required="true">` + action + `</hook>`, "required is for hooks of build_system_prompt, thread_started, thread_continued"},
		{"required anywhere", `<hook id="a" required="true"><when>x exists</when>` + action + `</hook>`, "required is for hooks of build_system_prompt"},
		{"condition", `<hook id="a" event="error"><condition path="p" op="is" value="1"/>` + action + `</hook>`, `condition 1.op: "is" is unknown`},
		{"when", `<hook id="a"><when>cost ></when>` + action + `</hook>`, "<when>: character 7: want a value"},
		{"twice", `<hook id="a" event="error">` + action + `</hook> <hook id="a" event="limit">` + action + `</hook>`, "taken by the hook on line 5"},
		{"set_extends elsewhere", `<hook id="a" event="thread_started"><set_extends>b</set_extends></hook>`, "event resolve_extends only"},
		{"set_extends with more", `<hook id="a" event="resolve_extends"><action primary="execute" item_id="x" set_extends="b"/></hook>`, "stands alone"},
		{"set_extends no id", `<hook id="a" event="resolve_extends"><set_extends>../b</set_extends></hook>`, "not an item id"},
		{"action at resolve_extends", `<hook id="a" event="resolve_extends">` + action + `</hook>`, "nothing but set_extends"},
		{"primary", `<hook id="a" event="error"><action primary="run" item_id="x"/></hook>`, `primary is "run"`},
		{"item type", `<hook id="a" event="error"><execute item_type="thing" item_id="x"/></hook>`, `item type "thing"`},
		{"no item", `<hook id="a" event="error"><execute item_type="tool"/></hook>`, "item_id is missing"},
		{"item id", `<hook id="a" event="error"><execute item_id="/etc/x"/></hook>`, "not an item id"},
		{"internal tool", `<hook id="a" event="error"><execute item_id="rye/agent/threads/internal/emitter"/></hook>`, "hooks of the system only"},
		{"decides at a context event", decide("thread_started", "abort"), "nothing can be decided"},
		{"decides at a notify event", decide("after_complete", "abort"), "nothing can be decided"},
		{"decides what cannot be", decide("after_step", "retry"), `cannot decide "retry"; it can fail, abort, continue, escalate`},
		{"vetoes wrongly", decide("before_handoff", "escalate"), "it can abort, continue"},
		{"decides nothing", `<hook id="a" event="error"><execute item_id="` + control + `"/></hook>`, "needs the param action: retry"},
		{
			"delay as text", `<hook id="a" event="error"><execute item_id="` + control + `"/><inputs><action>retry</action><delay_seconds>soon</delay_seconds></inputs></hook>`,
			`delay_seconds is "soon"; want a number of seconds`,
		},
		{
			"delay below zero", `<hook id="a" event="error"><execute item_id="` + control + `"><param name="action">retry</param><param name="delay_seconds" value="-1"/></execute></hook>`,
			`delay_seconds is "-1"`,
		},
		{
			"delay of two kinds", `<hook id="a"><when>x exists</when><execute item_id="` + control + `"><param name="action">retry</param><param name="delay_seconds" value="true"/></execute></hook>`,
			`delay_seconds is "true"`,
		},
		{"fetches a decision", `<hook id="a" event="error"><fetch item_id="` + control + `"/></hook>`, "is executed, not fetch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := hook.Set{}.WithDirectives(directive(t, "d", tt.xml))
			var wrong *hook.Error
			if !errors.As(err, &wrong) || wrong.Path != "d.md" || wrong.Line != 5 || wrong.Hook != "a" || !strings.Contains(wrong.Reason, tt.reason) {
				t.Errorf("got %v; want %s", err, tt.reason)
			}
		})
	}
}

// TestGoodActions are those that only look wrong.
func TestGoodActions(t *testing.T) {
	t.Parallel()
	for _, xml := range []string{
		`<hook event="error"><execute item_id="` + control + `"><param name="action" value="${error.verdict}"/></execute></hook>`,
		`<hook><when>x exists</when><execute item_id="` + control + `"><param name="action" value="retry"/></execute></hook>`,
		`<hook event="error"><execute item_id="` + control + `"/><inputs><action>retry</action><delay_seconds>${inputs.wait}</delay_seconds></inputs></hook>`,
		`<hook event="thread_started"><search><param name="query" value="x"/></search></hook>`,
		`<hook event="thread_started"><fetch><param name="query" value="x"/></fetch></hook>`,
		`<hook event="resolve_extends"><set_extends>${inputs.base}</set_extends></hook>`,
		`<hook event="thread_started"><fetch item_id="${inputs.a || inputs.b}"/></hook>`,
	} {
		if _, err := (hook.Set{}).WithDirectives(directive(t, "d", xml)); err != nil {
			t.Errorf("%s: %v", xml, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, yaml string
		line       int
		reason     string
	}{
		{"event", "hooks:\n- id: a\n  event: eror\n  action: {primary: execute, item_id: x}\n", 3, "did you mean"},
		{"one action", "hooks:\n- id: a\n  event: error\n  action:\n    primary: execute\n", 4, "item_id is missing"},
		{
			"second action",
			"hooks:\n- id: a\n  event: error\n  actions:\n  - {primary: execute, item_id: x}\n  - {primary: execute, item_id: " + hook.InternalPrefix + "x}\n",
			6, "hooks of the system only",
		},
		{"no primary", "hooks:\n- id: a\n  event: error\n  action: {item_id: x}\n", 4, `primary is ""`},
		{"twice", "hooks:\n- {id: a, event: error, action: {primary: execute, item_id: x}}\n- id: a\n  event: error\n  action: {primary: execute, item_id: x}\n", 3, "taken by the hook on line 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for space, f := range map[string]files{"user": {user: tt.yaml}, "project": {project: tt.yaml}} {
				_, _, err := load(t, f)
				var wrong *hook.Error
				if !errors.As(err, &wrong) || wrong.Line != tt.line || wrong.Hook != "a" || !strings.Contains(wrong.Reason, tt.reason) ||
					!strings.Contains(wrong.Path, space) {
					t.Errorf("got %v; want line %d, %s", err, tt.line, tt.reason)
				}
			}
		})
	}
	for yaml, reason := range map[string]string{
		"infra_hooks: [{event: error, action: {primary: execute, item_id: x}}]": "id is missing",
		"infra_hooks: [{id: a, action: {primary: execute, item_id: x}}]":        "event is missing",
	} {
		if _, _, err := load(t, files{system: yaml}); err == nil || !strings.Contains(err.Error(), "hook_conditions.yaml:1: hook ") || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", yaml, err)
		}
	}
	_, _, err := load(t, files{user: "hooks: 3"})
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		t.Errorf("a broken file: %v", err)
	}
}

// TestSystemMayUseInternalTools: its layers may.
func TestSystemMayUseInternalTools(t *testing.T) {
	t.Parallel()
	internal := "[{id: x, event: after_step, action: {primary: execute, item_id: " + hook.InternalPrefix + "emitter}}]\n"
	set, _, err := load(t, files{system: "builtin_hooks: " + internal + "infra_hooks: " + internal})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range set.All() {
		if !h.Exempt() {
			t.Errorf("%s needs capabilities", h.Source())
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	kinds := map[hook.Kind][]hook.Event{
		hook.KindExtends: {hook.EventResolveExtends},
		hook.KindContext: {hook.EventBuildSystemPrompt, hook.EventThreadStarted, hook.EventThreadContinued},
		hook.KindControl: {hook.EventAfterStep, hook.EventError, hook.EventLimit, hook.EventBeforeHandoff, hook.EventContextLimitReached},
		hook.KindNotify:  {hook.EventDirectiveReturn, hook.EventAfterComplete},
	}
	n := 0
	for kind, events := range kinds {
		for _, e := range events {
			n++
			if got, err := hook.ParseEvent(string(e)); err != nil || got != e || got.Kind() != kind {
				t.Errorf("%s: %q of kind %d, %v", e, got, got.Kind(), err)
			}
		}
	}
	if all := hook.Events(); len(all) != n || len(slices.Compact(slices.Sorted(slices.Values(all)))) != n {
		t.Errorf("events %v", all)
	}
}

// TestFormsInUse loads hooks the way existing projects write them.
func TestFormsInUse(t *testing.T) {
	t.Parallel()
	set, warnings, err := load(t, files{project: `hooks:
  - id: "inject_api_types"
    event: "thread_started"
    condition:
      path: "directive"
      op: "contains"
      value: "api"
    action:
      primary: "fetch"
      item_type: "knowledge"
      item_id: "project/api-types"
    description: "Inject API types for API-related directives only"
  - id: "record_learnings"
    event: "after_complete"
    condition:
      path: "cost.turns"
      op: "gte"
      value: 3
    action:
      primary: "execute"
      item_type: "directive"
      item_id: "project/record-learnings"
`})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	set, err = set.WithDirectives(directive(t, "d", `
<!-- notes -->
<hook id="summarize_on_complete" event="after_complete">
  <condition path="cost.turns" op="gte" value="1" />
  <action primary="execute" item_type="tool" item_id="rye/agent/threads/thread_summary">
    <param name="thread_id">${thread_id}</param>
  </action>
</hook>
<hook id="reinject_summary" event="thread_continued">
  <action primary="execute" item_type="knowledge" item_id="agent/threads/${inputs.previous_summary_id}" />
  <description>Summary of what was built before the handoff</description>
</hook>
<hook><when>cost.current > cost.limit * 0.9</when><execute item_type="directive">warn-cost-critical</execute></hook>
<hook><when>error.type == "permission_denied"</when><execute item_type="directive">request-elevated-permissions</execute>
  <inputs><requested_resource>${error.resource}</requested_resource></inputs></hook>
<hook><when>event.name == 'error' and event.code == "rate_limited"</when><execute item_type="directive">backoff</execute></hook>`))
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(set)
	data := map[string]any{"cost": map[string]any{"turns": 3, "current": 0.95, "limit": 1}, "thread_id": "d-1"}
	if err := s.Notify(t.Context(), hook.EventAfterComplete, data); err != nil ||
		s.called() != "rye/agent/threads/thread_summary warn-cost-critical project/record-learnings" {
		t.Errorf("%v, called %s", err, s.called())
	}
	s = newScene(set)
	data = map[string]any{"error": map[string]any{"type": "permission_denied", "resource": "r"}, "code": "rate_limited"}
	if _, err := s.Control(t.Context(), hook.EventError, data); err != nil || s.called() != "request-elevated-permissions backoff" {
		t.Errorf("%v, called %s", err, s.called())
	}
	s = newScene(set)
	data = map[string]any{"inputs": map[string]any{"previous_summary_id": "a/a-1"}}
	if _, err := s.Context(t.Context(), hook.EventThreadContinued, data); err != nil || s.called() != "agent/threads/a/a-1" {
		t.Errorf("%v, called %s", err, s.called())
	}
	s = newScene(set) // resumed: nobody has written a summary
	if _, err := s.Context(t.Context(), hook.EventThreadContinued, map[string]any{"inputs": map[string]any{}}); err != nil || s.called() != "" ||
		len(s.fired) != 1 || s.fired[0].Error != "" || !strings.Contains(s.fired[0].Result, "left out, as there is no inputs.previous_summary_id") {
		t.Errorf("%v, called %s, fired %+v", err, s.called(), s.fired)
	}
}
