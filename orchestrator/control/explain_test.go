package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// explained is a plan in short: of each event "ORDER id fires why", and who decides.
func explained(hooks *plan.HookPlan) string {
	var b strings.Builder
	for _, e := range hooks.Events {
		fmt.Fprintf(&b, "%s known=%t %s\n", e.Event, e.Known, e.Winner)
		for _, h := range e.Hooks {
			why, _, _ := strings.Cut(h.Why, " (")
			fmt.Fprintf(&b, "  %d %s %s %s|%s\n", h.Order, h.ID, h.Fires, strings.Join(h.Does, ","), why)
		}
	}
	return b.String()
}

func deciding(id, when, verdict string) string {
	return fmt.Sprintf("  - {id: %s, event: after_step, condition: %s, action: {primary: execute, item_type: tool, item_id: %s, params: {action: %s}}}\n",
		id, when, hook.ControlID, verdict)
}

func TestExplainHooks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const (
		never    = "{path: outputs.who, op: eq, value: x}" // after_step has no outputs
		unknown  = "{path: cost.turns, op: gt, value: 3}"
		byName   = "{path: event.name, op: eq, value: after_step}"
		noKnown  = "{not: {path: cost.turns, op: gt, value: 3}}" // true of missing data
		loadsWho = "action: {primary: execute, item_type: knowledge, item_id: who}"
	)
	tests := []struct {
		name, hooks, event, want string
	}{
		{"nothing decides", deciding("a", unknown, "fail"), "after_step", "known=false \n  1 a maybe decides fail|\n"},
		{"the same by another name", deciding("a", "{path: event.cost.turns, op: gt, value: 3}", "fail"), "after_step",
			"known=false \n  1 a maybe decides fail|\n"},
		{"data that the event never has", deciding("a", never, "fail"), "after_step",
			"known=false \n  0 a no decides fail|condition: outputs.who == \"x\" is false: outputs.who is not there\n"},
		{"the first decides", deciding("a", byName, "fail") + deciding("b", byName, "abort"), "after_step",
			"known=false a\n  1 a yes decides fail|\n  0 b no decides abort|hook \"a\"\n"},
		{"it depends who decides", deciding("a", unknown, "fail") + deciding("b", byName, "abort") + deciding("c", unknown, "continue"), "after_step",
			"known=false \n  1 a maybe decides fail|\n  2 b maybe decides abort|unless hook \"a\" decides\n  0 c no decides continue|hook \"b\"\n"},
		{"true of data that are missing", deciding("a", noKnown, "fail") + deciding("b", byName, "abort"), "after_step",
			"known=false \n  1 a maybe decides fail|\n  2 b maybe decides abort|unless hook \"a\" decides\n"},
		{"context", "  - {id: h, event: thread_started, " + loadsWho + "}\n  - {id: g, event: thread_started, " + loadsWho + "}\n" +
			"  - {id: f, event: thread_started, condition: {path: depth, op: gt, value: 5}, " + loadsWho + "}\n", "thread_started",
			"known=true \n  0 h no execute who|suppressed by its id\n  1 g yes execute who|\n" +
				"  0 f no execute who|condition: depth > 5 is false: depth is 0\n"},
		{"routes", "  - {id: r, event: resolve_extends, condition: {path: inputs.who, op: eq, value: you}, action: {set_extends: root}}\n" +
			"  - {id: q, event: resolve_extends, action: {set_extends: mid}}\n", "resolve_extends",
			"known=true r\n  1 r yes extends root|\n  0 q no extends mid|hook \"r\"\n"},
	}
	for _, tt := range tests {
		s := composedScene(t)
		s.write("config/agent/hooks.yaml", "hooks:\n"+tt.hooks)
		hooks, err := s.c.Planner.ExplainHooks(s.ctx, plan.ExplainRequest{Directive: "leaf", Inputs: map[string]any{"who": "you"}, Event: tt.event})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := explained(hooks); got != tt.event+" "+tt.want {
			t.Errorf("%s: got\n%swant\n%s %s", tt.name, got, tt.event, tt.want)
		}
	}
}

// Where a hook routes, the hooks of what it routes to count, and the plan says
// who did it.
func TestExplainHooksOfRoute(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	s.write("directives/routed.md", fmt.Sprintf(composedDirective, "routed", "root",
		`<hooks><hook id="mine" event="after_complete"><execute item_type="knowledge">who</execute></hook></hooks>`))
	s.write("config/agent/hooks.yaml", "hooks:\n  - {id: r, event: resolve_extends, action: {set_extends: routed}}\n")
	hooks, err := s.c.Planner.ExplainHooks(s.ctx, plan.ExplainRequest{Directive: "leaf"})
	s.noError(err)
	if got := strings.Join(hooks.Extends, " "); got != "routed root" || !strings.HasPrefix(hooks.ExtendsBy, "r (") || !strings.HasSuffix(hooks.ExtendsBy, "hooks.yaml:2)") {
		t.Errorf("extends %s by %s", got, hooks.ExtendsBy)
	}
	if len(hooks.Events) != len(hook.Events()) || !strings.Contains(explained(hooks), "after_complete known=false \n  1 mine yes execute who|\n") {
		t.Errorf("got\n%s", explained(hooks))
	}
}

// A directive that a start would refuse for its signature is explained all the same.
func TestExplainHooksOfUnsigned(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	s.c.Settings.Trust = &trust.Gate{
		Roots: s.c.Planner.Resolver.Roots(), Shipped: func(string, []byte) bool { return false },
		Own:      func() (*sign.PublicKey, error) { return nil, nil }, //nolint:nilnil // the user has no key
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Strict}, nil },
	}
	hooks, err := s.c.Planner.ExplainHooks(s.ctx, plan.ExplainRequest{Directive: "leaf"})
	s.noError(err)
	if got := strings.Join(hooks.Warnings, "\n"); strings.Count(got, "is not signed") != 5 { // three directives, two knowledge items
		t.Errorf("warnings:\n%s", got)
	}
	for _, req := range []plan.ExplainRequest{{Directive: "nobody"}, {Directive: "leaf", Event: "never"}} {
		if _, err := s.c.Planner.ExplainHooks(s.ctx, req); err == nil || tool.AsFault(err).Message == "" {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

// Where no provider can be used the model is not known, and what depends on it
// stays open.
func TestExplainHooksWithoutModel(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	s.write("config/agent/agent.yaml", "provider: {default: anthropic}\n")
	s.write("config/agent/hooks.yaml", "hooks:\n  - {id: m, event: thread_started, condition: {path: model, op: contains, value: x}, "+
		"action: {primary: execute, item_type: knowledge, item_id: who}}\n")
	s.c.Settings.Providers = provider.NewSource(func(string) string { return "" })
	hooks, err := s.c.Planner.ExplainHooks(s.ctx, plan.ExplainRequest{Directive: "leaf", Event: "thread_started"})
	s.noError(err)
	if got := explained(hooks); got != "thread_started known=false \n  1 m maybe execute who|\n" {
		t.Errorf("got\n%s", got)
	}
}
