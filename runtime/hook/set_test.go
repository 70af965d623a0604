package hook_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// drawn is a hook of the property tests.
type drawn struct {
	id      string
	layer   hook.Layer
	event   hook.Event
	want    int // the condition is n == want
	decides bool
}

func drawHooks(t *rapid.T) []drawn {
	n := rapid.IntRange(0, 12).Draw(t, "hooks")
	hooks := make([]drawn, n)
	for i := range hooks {
		hooks[i] = drawn{
			id:      fmt.Sprintf("h%d", i),
			layer:   hook.Layer(rapid.IntRange(0, 4).Draw(t, "layer")),
			event:   rapid.SampledFrom([]hook.Event{hook.EventError, hook.EventLimit}).Draw(t, "event"),
			want:    rapid.IntRange(0, 1).Draw(t, "want"),
			decides: rapid.Bool().Draw(t, "decides"),
		}
	}
	return hooks
}

func (d drawn) itemID() string {
	if d.decides {
		return hook.ControlID
	}
	return "x"
}

func (d drawn) yaml() string {
	return fmt.Sprintf("- {id: %s, event: %s, condition: {path: n, op: eq, value: %d}, action: {primary: execute, item_id: %s, params: {action: fail}}}\n",
		d.id, d.event, d.want, d.itemID())
}

func (d drawn) xml() string {
	return fmt.Sprintf(`<hook id=%q event=%q><condition path="n" op="eq" value="%d"/><execute item_id=%q><param name="action" value="fail"/></execute></hook>`,
		d.id, d.event, d.want, d.itemID())
}

// setOf writes the hooks where they belong and loads them.
func setOf(t *rapid.T, dir string, hooks []drawn) hook.Set {
	yaml := map[hook.Layer]string{
		hook.LayerUser: "hooks:\n", hook.LayerProject: "hooks:\n", hook.LayerBuiltin: "builtin_hooks:\n", hook.LayerInfra: "infra_hooks:\n",
	}
	xml := ""
	for _, d := range hooks {
		if d.layer == hook.LayerDirective {
			xml += d.xml()
			continue
		}
		yaml[d.layer] += d.yaml()
	}
	set, _, err := loadIn(t, dir, files{
		user: yaml[hook.LayerUser], project: yaml[hook.LayerProject], system: yaml[hook.LayerBuiltin] + yaml[hook.LayerInfra],
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err = set.WithDirectives(directive(t, "d", xml))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// expected is what an error with n fires, in the words of the specification.
func expected(hooks []drawn, n int, suppressed, firing []string) []string {
	var fired []string
	decided := false
	for layer := hook.LayerUser; layer <= hook.LayerInfra; layer++ {
		for _, d := range hooks {
			infra := layer == hook.LayerInfra
			if d.layer != layer || d.event != hook.EventError || d.want != n || slices.Contains(firing, d.id) ||
				!infra && (decided || slices.Contains(suppressed, d.id)) {
				continue
			}
			fired = append(fired, d.id)
			decided = decided || d.decides
		}
	}
	return fired
}

func TestOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		hooks := drawHooks(t)
		someIDs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("h%d", rapid.IntRange(0, 11).Draw(t, "id")) }), 0, 4)
		suppressed, firing := someIDs.Draw(t, "suppressed"), someIDs.Draw(t, "firing")
		n := rapid.IntRange(0, 1).Draw(t, "n")
		want := strings.Join(expected(hooks, n, suppressed, firing), " ")
		data := map[string]any{"n": n}

		s := newScene(setOf(t, dir, hooks).Suppress(suppressed...))
		s.Firing = firing
		if _, err := s.Control(t.Context(), hook.EventError, data); err != nil || s.ids() != want {
			t.Fatalf("fired %q, %v; want %q", s.ids(), err, want)
		}
		var explained []string
		for _, e := range s.Hooks.Explain(hook.EventError, data, firing...) {
			if e.Order > 0 {
				explained = append(explained, e.Hook.ID)
			}
			if (e.Order > 0) != (e.Why == "") || e.Hears != (e.Hook.Event == hook.EventError) || e.Order > 0 && e.Order != len(explained) {
				t.Fatalf("explained as %+v", e)
			}
		}
		if got := strings.Join(explained, " "); got != want {
			t.Fatalf("explained %q, want %q", got, want)
		}
		if all := s.Hooks.All(); len(all) != len(hooks) || !slices.IsSortedFunc(all, func(a, b *hook.Hook) int { return int(a.Layer - b.Layer) }) {
			t.Fatalf("%d hooks of %d", len(all), len(hooks))
		}
	})
}

// TestChain: hooks of the root come first, and ids may be those of an ancestor.
func TestChain(t *testing.T) {
	t.Parallel()
	hooks := func(id string) hook.DirectiveHooks {
		return directive(t, id, `<hook id="same" event="error"><execute item_id="`+id+`"/></hook><hook event="error"><execute item_id="`+id+`/2"/></hook>`)
	}
	before := hook.Set{}
	set, err := before.WithDirectives(hooks("root"), hooks("middle"), hooks("leaf"))
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(set)
	if _, err := s.Control(t.Context(), hook.EventError, nil); err != nil || s.called() != "root root/2 middle middle/2 leaf leaf/2" {
		t.Errorf("%v, called %s", err, s.called())
	}
	if s.ids() != "same root#2 same middle#2 same leaf#2" || len(before.All()) != 0 {
		t.Errorf("fired %s", s.ids())
	}
}

// explained is what a person is shown.
func explained(title string, all []hook.Explanation, dir string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", title)
	for _, e := range all {
		says := fmt.Sprintf("%d.", e.Order)
		if e.Order == 0 {
			says = "- "
		}
		source := strings.ReplaceAll(filepath.ToSlash(e.Hook.Source()), filepath.ToSlash(dir), "…")
		why := strings.ReplaceAll(filepath.ToSlash(e.Why), filepath.ToSlash(dir), "…")
		fmt.Fprintf(&out, "%s layer %d %-14s %-12s %s\n", says, e.Hook.Layer, e.Hook.Layer, e.Hook.ID, source)
		if why != "" {
			fmt.Fprintf(&out, "     %s\n", why)
		}
	}
	return out.String()
}

func TestExplainGolden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	set, warnings, err := loadIn(t, dir, files{user: read("user.yaml"), project: read("project.yaml"), system: read("system.yaml")})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	set, err = set.WithDirectives(directive(t, "base", read("base.xml")), directive(t, "deploy/api", read("leaf.xml")))
	if err != nil {
		t.Fatal(err)
	}
	set = set.Suppress("chatty", "team/secret")
	started := map[string]any{"directive": "deploy/api", "inputs": map[string]any{"topic": "secret"}, "model": "x/y"}
	failed := map[string]any{"error": map[string]any{"message": "slow down"}, "classification": map[string]any{"category": "rate_limited", "retryable": true}}
	got := explained("thread_started", set.Explain(hook.EventThreadStarted, started), dir) + "\n" +
		explained("error", set.Explain(hook.EventError, failed), dir) + "\n" +
		explained("error, in a thread that a hook started", set.Explain(hook.EventError, failed, "ask"), dir) + "\n" +
		explained("resolve_extends", set.Explain(hook.EventResolveExtends, started), dir)
	golden := filepath.Join("testdata", "explain.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := read("explain.txt"); got != want {
		t.Errorf("got:\n%s", got)
	}
}

// FuzzLoad reads any bytes as settings and explains every event: there are hooks
// that make sense, or an error with a place.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"user.yaml", "project.yaml", "system.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content string) {
		set, _, err := loadIn(t, dir, files{project: content, system: content})
		var ofHook *hook.Error
		var ofFile *config.Error
		if err != nil && !errors.As(err, &ofHook) && !errors.As(err, &ofFile) {
			t.Fatalf("%T: %v", err, err)
		}
		for _, event := range hook.Events() {
			for _, e := range set.Explain(event, map[string]any{"a": []any{1, "x"}}) {
				if e.Hook.ID == "" || e.Hook.Line == 0 || e.Hook.Timeout <= 0 || len(e.Hook.Actions) == 0 {
					t.Fatalf("half a hook: %+v", e.Hook)
				}
			}
		}
	})
}
