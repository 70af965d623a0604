package hook_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

func TestContext(t *testing.T) {
	t.Parallel()
	s := newScene(ofXML(t, `
<hook id="first" event="thread_started"><fetch item_type="knowledge" item_id="k/${inputs.topic}"/></hook>
<hook id="other" event="thread_continued"><fetch item_id="never"/></hook>
<hook id="false" event="thread_started"><condition path="inputs.topic" op="eq" value="cats"/><fetch item_id="never"/></hook>
<hook id="bare" event="thread_started" position="after" wrap="false"><fetch item_id="a"/><execute item_type="tool" item_id="t">
	<param name="n" value="${n}"/><param name="text" value="n=${n}${gone}"/></execute></hook>
<hook id="silent" event="thread_started"><execute item_id="silent"/></hook>`))
	s.run = func(_ context.Context, c hook.Call) (hook.Result, error) {
		switch c.Action.ItemID {
		case "k/dogs":
			return hook.Result{Text: "about ${inputs.topic}: ${inputs.trap} ${gone}", Name: "Dogs", Knowledge: true}, nil
		case "silent":
			return hook.Result{}, nil
		}
		return hook.Result{Text: "${inputs.topic}"}, nil
	}
	blocks, err := s.Context(t.Context(), hook.EventThreadStarted, map[string]any{
		"inputs": map[string]any{"topic": "dogs", "trap": "${n}"}, "n": int64(3),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []hook.Block{
		{Position: hook.Before, Text: "<Dogs id=k/dogs>about dogs: ${n} </Dogs>", ItemID: "k/dogs", HookID: "first"},
		{Position: hook.After, Text: "${inputs.topic}", ItemID: "a", HookID: "bare", Given: "${inputs.topic}"},
		{Position: hook.After, Text: "${inputs.topic}", ItemID: "t", HookID: "bare", Given: "${inputs.topic}"},
	}
	if !reflect.DeepEqual(blocks, want) {
		t.Errorf("got\n%+v\nwant\n%+v", blocks, want)
	}
	if got := s.called(); got != "k/dogs a t silent" {
		t.Errorf("called %s", got)
	}
	if params := s.calls[2].Action.Params; !reflect.DeepEqual(params, map[string]any{"n": int64(3), "text": "n=3"}) {
		t.Errorf("params %#v", params)
	}
	if first := s.fired[0]; first.Source != "d.md:6" || first.Layer != 1 || first.Event != "thread_started" || first.DurationMS != 1 ||
		first.Result == "" || first.Error != "" || !slices.Equal(first.Warnings, []string{"there is nothing to put in for ${gone}"}) {
		t.Errorf("record %+v", first)
	}
	if bare := s.fired[1]; len(bare.Warnings) != 1 {
		t.Errorf("warnings of %+v", bare)
	}
}

// decides is a hook that gives a verdict at an event.
func decides(id, event, verdict, condition string) string {
	return fmt.Sprintf(`<hook id=%q event=%q>%s<execute item_type="tool" item_id=%q><param name="action" value=%q/>
		<param name="error" value="${error.message}"/></execute></hook>`, id, event, condition, hook.ControlID, verdict)
}

func TestControl(t *testing.T) {
	t.Parallel()
	notes := func(id string) string {
		return `<hook id="` + id + `" event="error"><execute item_id="` + id + `"/></hook>`
	}
	tests := []struct {
		name, xml string
		verdict   hook.Verdict
		by        string
		fired     string
	}{
		{"nobody", "", "", "", ""},
		{"only notes", notes("a"), "", "", "a"},
		{"first wins", notes("a") + decides("b", "error", "retry", "") + decides("c", "error", "fail", "") + notes("d"), hook.Retry, "b", "a b"},
		{"the first whose condition holds", decides("a", "error", "retry", `<condition path="x" op="exists"/>`) + decides("b", "error", "fail", ""), hook.Fail, "b", "b"},
		{"by a template", decides("a", "error", "${error.verdict}", ""), hook.Abort, "a", "a"},
		{"what cannot be decided fails", decides("a", "error", "${error.message}", "") + decides("b", "error", "escalate", ""), hook.Escalate, "b", "a b"},
		{"continue is a decision", decides("a", "error", "continue", "") + decides("b", "error", "fail", ""), hook.Continue, "a", "a"},
		{
			"the first of one hook",
			`<hook id="a" event="error"><execute item_id="` + control + `"><param name="action">retry</param><param name="error">it broke</param></execute>` +
				`<execute item_id="` + control + `"><param name="action">fail</param></execute></hook>`,
			hook.Retry, "a", "a",
		},
		{"other event", decides("a", "limit", "fail", ""), "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(ofXML(t, tt.xml))
			got, err := s.Control(t.Context(), hook.EventError, map[string]any{
				"error": map[string]any{"message": "it broke", "verdict": "abort"},
			})
			if err != nil || got.Verdict != tt.verdict || got.HookID != tt.by || s.ids() != tt.fired {
				t.Errorf("%+v, %v, fired %q", got, err, s.ids())
			}
			if got.Given() && !reflect.DeepEqual(got.Params, map[string]any{"error": "it broke"}) {
				t.Errorf("params %v", got.Params)
			}
		})
	}
}

// TestDecisionParams have the types of data, whatever the reader of the file gave.
func TestDecisionParams(t *testing.T) {
	t.Parallel()
	set, _, err := load(t, files{project: "hooks: [{id: a, event: error, action: {primary: execute, item_id: " + control +
		", params: {action: retry, delay_seconds: 5, list: [1, 2.5]}}}]"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := newScene(set).Control(t.Context(), hook.EventError, nil)
	want := map[string]any{"delay_seconds": int64(5), "list": []any{int64(1), 2.5}}
	if err != nil || d.Verdict != hook.Retry || !reflect.DeepEqual(d.Params, want) {
		t.Errorf("%v, %#v", err, d)
	}
}

// TestDelays: the delay of a retry is a number however it is written.
func TestDelays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		xml  string
		want float64 // below 0: there is none
		err  string
	}{
		"attribute":      {`<execute item_id="` + control + `"><param name="action">retry</param><param name="delay_seconds" value="5"/></execute>`, 5, ""},
		"text":           {`<execute item_id="` + control + `"><param name="action">retry</param><param name="delay_seconds"> 5 </param></execute>`, 5, ""},
		"inputs":         {`<execute item_id="` + control + `"/><inputs><action>retry</action><delay_seconds>0.3</delay_seconds></inputs>`, 0.3, ""},
		"template":       {`<execute item_id="` + control + `"/><inputs><action>retry</action><delay_seconds>1${error.zero}</delay_seconds></inputs>`, 10, ""},
		"missing":        {`<execute item_id="` + control + `"/><inputs><action>retry</action><delay_seconds>${error.nothing}</delay_seconds></inputs>`, -1, ""},
		"none":           {`<execute item_id="` + control + `"/><inputs><action>retry</action></inputs>`, -1, ""},
		"not a number":   {`<execute item_id="` + control + `"/><inputs><action>retry</action><delay_seconds>${error.word}</delay_seconds></inputs>`, -1, `delay_seconds is "soon"`},
		"of a structure": {`<execute item_id="` + control + `"/><inputs><action>retry</action><delay_seconds>${error}</delay_seconds></inputs>`, -1, "want a number of seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := hook.Set{}.WithDirectives(directive(t, "d", `<hook id="a" event="error">`+c.xml+`</hook>`))
			if err != nil {
				t.Fatal(err)
			}
			s := newScene(set)
			d, err := s.Control(t.Context(), hook.EventError, map[string]any{"error": map[string]any{"zero": int64(0), "word": "soon"}})
			if err != nil {
				t.Fatal(err)
			}
			if c.err != "" {
				if d.Given() || len(s.fired) != 1 || !strings.Contains(s.fired[0].Error, c.err) {
					t.Errorf("decided %+v, and fired %+v", d, s.fired)
				}
				return
			}
			if d.Verdict != hook.Retry || (d.Delay != nil) != (c.want >= 0) || d.Delay != nil && *d.Delay != c.want {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

// TestInfrastructureAlwaysRuns: and decides when nobody else has.
func TestInfrastructureAlwaysRuns(t *testing.T) {
	t.Parallel()
	abort := "{primary: execute, item_id: " + hook.ControlID + ", params: {action: abort}}"
	set, _, err := load(t, files{system: "infra_hooks:\n- {id: i, event: limit, action: " + abort + "}\n- {id: j, event: limit, action: {primary: execute, item_id: j}}\n"})
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(set.Suppress("i", "j"))
	if d, err := s.Control(t.Context(), hook.EventLimit, nil); err != nil || d.Verdict != hook.Abort || s.ids() != "i j" {
		t.Errorf("alone: %+v, %v, %s", d, err, s.ids())
	}
	set, err = set.WithDirectives(directive(t, "d", decides("a", "limit", "fail", "")))
	if err != nil {
		t.Fatal(err)
	}
	s = newScene(set)
	if d, err := s.Control(t.Context(), hook.EventLimit, nil); err != nil || d.Verdict != hook.Fail || d.HookID != "a" || s.ids() != "a i j" {
		t.Errorf("behind a decision: %+v, %v, %s", d, err, s.ids())
	}
}

func TestNotifyAndShortForm(t *testing.T) {
	t.Parallel()
	s := newScene(ofXML(t, `
<hook id="any"><when>cost.spend &gt; limits.spend * 0.8</when><execute item_type="directive">warn</execute>
	<inputs><at>${event.name}</at><spend>${event.cost.spend}</spend></inputs></hook>
<hook id="stop"><when>event.name == "after_step" or event.name == "after_complete"</when><execute item_type="tool">`+hook.ControlID+`</execute><inputs><action>abort</action></inputs></hook>
<hook id="end" event="after_complete"><execute item_id="end"/></hook>`))
	data := map[string]any{"cost": map[string]any{"spend": 0.9}, "limits": map[string]any{"spend": 1}}
	if d, err := s.Control(t.Context(), hook.EventAfterStep, data); err != nil || d.Verdict != hook.Abort || s.ids() != "any stop" {
		t.Fatalf("%+v, %v, fired %s", d, err, s.ids())
	}
	if params := s.calls[0].Action.Params; !reflect.DeepEqual(params, map[string]any{"at": "after_step", "spend": 0.9}) {
		t.Errorf("params %v", params)
	}
	if err := s.Notify(t.Context(), hook.EventAfterComplete, data); err != nil || s.ids() != "any stop any end" {
		t.Errorf("%v, fired %s", err, s.ids())
	}
	for _, event := range []hook.Event{hook.EventThreadStarted, hook.EventBuildSystemPrompt} {
		delete(data, "cost") // there is none yet
		if blocks, err := s.Context(t.Context(), event, data); err != nil || blocks != nil {
			t.Errorf("%s: %v, %v", event, blocks, err)
		}
	}
}

// TestShortFormHearsEveryEvent fires a hook without event at whatever event its
// condition holds, and tells at which it cannot.
func TestShortFormHearsEveryEvent(t *testing.T) {
	t.Parallel()
	set := ofXML(t, `
<hook id="begin"><when>event.name == "thread_started"</when><execute item_type="knowledge">conventions</execute></hook>
<hook id="both"><when>event.name in ["thread_started", "error"] and directive == "d"</when><execute item_type="knowledge">both</execute></hook>
<hook id="base"><when>category == "c"</when><set_extends>base</set_extends></hook>
<hook id="stop"><when>directive == "d"</when><execute item_type="tool">`+hook.ControlID+`</execute><inputs><action>fail</action></inputs></hook>`)
	for id, want := range map[string]string{
		"begin": "thread_started", "both": "thread_started error", "base": "resolve_extends",
		"stop": "after_step error limit before_handoff context_limit_reached",
	} {
		var got []string
		for _, h := range set.All() {
			for _, e := range h.Events() {
				if h.ID == id {
					got = append(got, string(e))
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s hears %s, want %s", id, got, want)
		}
	}
	s := newScene(set)
	blocks, err := s.Context(t.Context(), hook.EventThreadStarted, map[string]any{"directive": "d"})
	if err != nil || len(blocks) != 2 || s.ids() != "begin both" {
		t.Errorf("%+v, %v, fired %s", blocks, err, s.ids())
	}
	if target, h, _ := set.ResolveExtends(map[string]any{"category": "c"}); target != "base" || h == nil {
		t.Errorf("extends %q", target)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	set := ofXML(t, `
<hook id="fails" event="after_complete"><execute item_id="broken"/><execute item_id="behind"/></hook>
<hook id="no-id" event="after_complete"><execute item_id="agent/${gone}"/></hook>
<hook id="smuggled" event="after_complete"><execute item_id="${evil}"/></hook>
<hook id="templated" event="after_complete"><execute item_id="${path}"/></hook>
<hook id="last" event="after_complete"><execute item_id="last"/></hook>`)
	broken := errors.New("no such tool")
	s := newScene(set)
	s.run = func(_ context.Context, c hook.Call) (hook.Result, error) {
		if c.Action.ItemID == "broken" {
			return hook.Result{}, broken
		}
		return hook.Result{}, nil
	}
	err := s.Notify(t.Context(), hook.EventAfterComplete, map[string]any{
		"evil": hook.InternalPrefix + "emitter", "path": "../${x}",
	})
	if err != nil || s.called() != "broken last" || s.ids() != "fails no-id smuggled templated last" {
		t.Fatalf("%v, called %s, fired %s", err, s.called(), s.ids())
	}
	for i, want := range []string{"no such tool", "not an item id", "hooks of the system only", "not an item id", ""} {
		if got := s.fired[i].Error; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", s.fired[i].HookID, got, want)
		}
	}

	for _, fatal := range []error{&trust.RefusedError{}, fmt.Errorf("hash: %w", hook.ErrIntegrity)} {
		broken = fmt.Errorf("fetch: %w", fatal)
		s.fired = nil
		err := s.Notify(t.Context(), hook.EventAfterComplete, nil)
		if !errors.Is(err, fatal) || !strings.Contains(err.Error(), `"fails" (d.md:6)`) || s.ids() != "fails" {
			t.Errorf("%v: %v, fired %s", fatal, err, s.ids())
		}
	}
}

// TestRequired: what a required hook cannot give ends the thread, and the hooks behind it
// do not fire. The thread goes without what another cannot give.
func TestRequired(t *testing.T) {
	t.Parallel()
	s := newScene(ofXML(t, `
<hook id="wanted" event="thread_started"><fetch item_id="none"/></hook>
<hook id="other" event="thread_started" required="true"><when>other exists</when><fetch item_id="none"/></hook>
<hook id="had" event="thread_started" required="true"><fetch item_id="had"/></hook>
<hook id="needed" event="thread_started" required="true"><fetch item_id="none"/></hook>
<hook id="behind" event="thread_started"><fetch item_id="behind"/></hook>`))
	none := errors.New("no such knowledge")
	s.run = func(_ context.Context, c hook.Call) (hook.Result, error) {
		if c.Action.ItemID == "none" {
			return hook.Result{}, none
		}
		return hook.Result{Text: "x"}, nil
	}
	_, err := s.Context(t.Context(), hook.EventThreadStarted, nil)
	if !errors.Is(err, none) || !strings.Contains(err.Error(), `hook "needed" (d.md:9)`) || s.ids() != "wanted had needed" {
		t.Errorf("%v, fired %s", err, s.ids())
	}
	none = nil
	s.fired = nil
	if _, err := s.Context(t.Context(), hook.EventThreadStarted, nil); err != nil || s.ids() != "wanted had needed behind" {
		t.Errorf("%v, fired %s", err, s.ids())
	}
}

// TestVerbatim: what a thread has left is no template, and is on record as it was given
// only where no item has it.
func TestVerbatim(t *testing.T) {
	t.Parallel()
	s := newScene(ofXML(t, `<hook id="a" event="thread_started"><fetch item_id="x"/></hook>`))
	for result, want := range map[hook.Result]hook.Block{
		{Text: "${a}", Name: "n", Knowledge: true}:                 {Text: "<n id=x>1</n>"},
		{Text: "${a}", Name: "n", Knowledge: true, Verbatim: true}: {Text: "<n id=x>${a}</n>"},
		{Text: "${a}", Name: "n", Verbatim: true}:                  {Text: "<n id=x>${a}</n>", Given: "${a}"},
	} {
		s.run = func(context.Context, hook.Call) (hook.Result, error) { return result, nil }
		want.Position, want.ItemID, want.HookID = hook.Before, "x", "a"
		blocks, err := s.Context(t.Context(), hook.EventThreadStarted, map[string]any{"a": 1})
		if err != nil || len(blocks) != 1 || blocks[0] != want {
			t.Errorf("%+v: %+v, %v", result, blocks, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newScene(ofXML(t, `<hook id="slow" event="after_complete" timeout="0.001"><execute item_id="slow"/><execute item_id="behind"/></hook>
<hook id="next" event="after_complete"><execute item_id="next"/></hook>`))
	s.run = func(ctx context.Context, c hook.Call) (hook.Result, error) {
		if c.Action.ItemID == "slow" {
			<-ctx.Done()
			return hook.Result{}, ctx.Err()
		}
		return hook.Result{}, nil
	}
	if slow, next := s.Hooks.All()[0].Timeout, s.Hooks.All()[1].Timeout; slow != time.Millisecond || next != time.Minute {
		t.Errorf("timeouts %s and, not given, %s", slow, next)
	}
	if err := s.Notify(t.Context(), hook.EventAfterComplete, nil); err != nil || s.called() != "slow next" {
		t.Fatalf("%v, called %s", err, s.called())
	}
	if got := s.fired[0].Error; got != "took longer than its timeout of 1ms" {
		t.Errorf("recorded %q", got)
	}
	s.run = func(ctx context.Context, _ hook.Call) (hook.Result, error) {
		<-ctx.Done()
		return hook.Result{}, &trust.RefusedError{}
	}
	var refused *trust.RefusedError
	if err := s.Notify(t.Context(), hook.EventAfterComplete, nil); !errors.As(err, &refused) {
		t.Errorf("refused at the timeout: %v", err)
	}
}

// TestCancelled: no hook is fired when the thread has been told to stop, and the
// reason is what comes back.
func TestCancelled(t *testing.T) {
	t.Parallel()
	cause := errors.New("told to stop")
	s := newScene(ofXML(t, `<hook id="a" event="error"><execute item_id="a"/></hook><hook id="b" event="error"><execute item_id="b"/></hook>`))
	ctx, cancel := context.WithCancelCause(t.Context())
	s.run = func(ctx context.Context, _ hook.Call) (hook.Result, error) {
		cancel(cause)
		<-ctx.Done()
		return hook.Result{}, ctx.Err()
	}
	if _, err := s.Control(ctx, hook.EventError, nil); !errors.Is(err, cause) || s.ids() != "a" || s.fired[0].Error != cause.Error() {
		t.Errorf("%v, fired %+v", err, s.fired)
	}
}

// TestNoRecursion: hooks that started the thread, or one above, stay silent, and
// a call carries their ids and its own down.
func TestNoRecursion(t *testing.T) {
	t.Parallel()
	s := newScene(ofXML(t, `<hook id="a" event="error"><execute item_id="a"/></hook><hook id="b" event="error"><execute item_id="b"/></hook>`))
	s.Firing = []string{"x", "a"}
	if _, err := s.Control(t.Context(), hook.EventError, nil); err != nil || s.ids() != "b" {
		t.Fatalf("%v, fired %s", err, s.ids())
	}
	if got := s.calls[0].Firing; !slices.Equal(got, []string{"x", "a", "b"}) {
		t.Errorf("told %v", got)
	}
}

func TestSuppress(t *testing.T) {
	t.Parallel()
	set := ofXML(t, `
<hook id="by-hook" event="thread_started"><fetch item_id="a"/></hook>
<hook id="by-item" event="thread_started"><fetch item_id="k/${x}"/></hook>
<hook id="half" event="thread_started"><fetch item_id="b"/><fetch item_id="k/one"/></hook>
<hook id="not context" event="after_step"><execute item_id="k/one"/></hook>`).Suppress("by-hook").Suppress("k/one")
	s := newScene(set)
	data := map[string]any{"x": "one"}
	if _, err := s.Context(t.Context(), hook.EventThreadStarted, data); err != nil || s.called() != "b" || s.ids() != "half" {
		t.Errorf("%v, called %s, fired %s", err, s.called(), s.ids())
	}
	if _, err := s.Control(t.Context(), hook.EventAfterStep, data); err != nil || s.called() != "b k/one" {
		t.Errorf("%v, called %s", err, s.called())
	}
}

// TestInfrastructureIsNotSuppressed: neither by its id nor by what it injects.
func TestInfrastructureIsNotSuppressed(t *testing.T) {
	t.Parallel()
	set, _, err := load(t, files{system: "infra_hooks: [{id: i, event: thread_started, action: {primary: fetch, item_type: knowledge, item_id: k/x}}]"})
	if err != nil {
		t.Fatal(err)
	}
	for _, suppressed := range []string{"i", "k/x"} {
		s := newScene(set.Suppress(suppressed))
		if blocks, err := s.Context(t.Context(), hook.EventThreadStarted, nil); err != nil || len(blocks) != 1 {
			t.Errorf("%s: %v, %v", suppressed, blocks, err)
		}
	}
}

func TestResolveExtends(t *testing.T) {
	t.Parallel()
	set := ofXML(t, `
<hook id="only api" event="resolve_extends"><condition path="directive" op="contains" value="api"/><set_extends>base/api</set_extends></hook>
<hook id="chosen" event="resolve_extends"><set_extends>${inputs.base}</set_extends></hook>
<hook id="rest" event="resolve_extends"><condition path="has_extends" op="eq" value="false"/><set_extends>base/rest</set_extends></hook>`)
	tests := []struct {
		data         map[string]any
		target, hook string
		warnings     int
	}{
		{map[string]any{"directive": "my-api", "inputs": map[string]any{"base": "b"}}, "base/api", "only api", 0},
		{map[string]any{"directive": "x", "inputs": map[string]any{"base": "b"}}, "b", "chosen", 0},
		{map[string]any{"directive": "x", "has_extends": false}, "base/rest", "rest", 2},
		{map[string]any{"directive": "x", "has_extends": false, "inputs": map[string]any{"base": "../b"}}, "base/rest", "rest", 1},
		{map[string]any{"directive": "x", "has_extends": true}, "", "", 2},
	}
	for _, tt := range tests {
		target, h, warnings := set.ResolveExtends(tt.data)
		id := ""
		if h != nil {
			id = h.ID
		}
		if target != tt.target || id != tt.hook || len(warnings) != tt.warnings {
			t.Errorf("%v: %q by %q, warnings %q", tt.data, target, id, warnings)
		}
	}
	if target, h, _ := set.Suppress("chosen", "rest").ResolveExtends(tests[1].data); target != "" || h != nil {
		t.Errorf("suppressed hooks chose %q", target)
	}
}
