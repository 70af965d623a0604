package hook_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
)

// The data of an event are those that its description names.
func TestDataOfEvents(t *testing.T) {
	t.Parallel()
	for _, event := range hook.Events() {
		if len(event.Data()) == 0 {
			t.Errorf("%s has no data", event)
		}
	}
	facts, err := prompt.Facts{Thread: &prompt.ThreadFacts{}}.Data()
	if err != nil {
		t.Fatal(err)
	}
	started := slices.Sorted(maps.Keys(facts))
	for event, have := range map[hook.Event][]string{
		hook.EventBuildSystemPrompt: started, hook.EventThreadStarted: started,
		hook.EventThreadContinued: slices.Sorted(slices.Values(append([]string{"previous_summary_id", "previous_thread_id"}, started...))),
	} {
		if want := slices.Sorted(slices.Values(event.Data())); !slices.Equal(have, want) {
			t.Errorf("%s has\n%q, said to have\n%q", event, have, want)
		}
	}
}

func TestDataOfHooks(t *testing.T) {
	t.Parallel()
	set, err := hook.Set{}.WithDirectives(directive(t, "d", `
		<hook id="one" event="limit"><execute item_id="x"/></hook>
		<hook id="any"><when>thread_id == "x"</when><execute item_id="x"/></hook>
		<hook id="decides"><when>thread_id == "x"</when>
			<action primary="execute" item_id="rye/agent/threads/internal/control"><param name="action">fail</param></action></hook>`))
	if err != nil {
		t.Fatal(err)
	}
	hooks := set.All()
	if got := hooks[0].Data(); !slices.Equal(got, []string{
		"cost", "current_max", "current_value", "directive", "directive_text", "inputs", "limit_code", "limits", "model", "project_path", "thread_id",
	}) {
		t.Errorf("of one event: %q", got)
	}
	for name, want := range map[string][2]bool{"outputs": {true, false}, "status": {true, false}, "cost": {true, true}, "depth": {true, false}} {
		if got := [2]bool{slices.Contains(hooks[1].Data(), name), slices.Contains(hooks[2].Data(), name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Explain tells a condition that does not hold from a hook that comes first and
// from all other obstacles.
func TestExplainTellsObstaclesApart(t *testing.T) {
	t.Parallel()
	const fail = `<action primary="execute" item_id="rye/agent/threads/internal/control"><param name="action">fail</param></action>`
	set, err := hook.Set{}.WithDirectives(directive(t, "d", `
		<hook id="unmet" event="error"><condition path="error" op="eq" value="x"/>`+fail+`</hook>
		<hook id="silent" event="error"><condition path="error" op="eq" value="x"/>`+fail+`</hook>
		<hook id="first" event="error">`+fail+`</hook>
		<hook id="second" event="error">`+fail+`</hook>
		<hook id="other" event="limit">`+fail+`</hook>`))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range set.Suppress("silent").Explain(hook.EventError, nil) {
		by := ""
		if e.By != nil {
			by = e.By.ID
		}
		if e.Unmet != (e.Hook.ID == "unmet") || (by == "first") != (e.Hook.ID == "second") || by != "" && by != "first" {
			t.Errorf("%s: unmet %t, by %q, why %q", e.Hook.ID, e.Unmet, by, e.Why)
		}
	}
}
