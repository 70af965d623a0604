package loop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// hooksFile is where the hooks of a project stand.
const hooksFile = ".ai/config/agent/hooks.yaml"

const (
	toText  = "turns:\n  - {text: Done., usage: {input_tokens: 100, output_tokens: 10}}\n"
	toTools = "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_once, input: {word: a}}], usage: {input_tokens: 100, output_tokens: 10}}\n  - text: Done.\n"
)

// inHooks is a hook of the project in one line.
func inHooks(id, event, condition, act string) string {
	if condition != "" {
		condition = "condition: " + condition + ", "
	}
	return fmt.Sprintf("  - {id: %s, event: %s, %saction: {%s}}\n", id, event, condition, act)
}

// decides is the action of a hook that gives a verdict.
func decides(verdict, params string) string {
	return fmt.Sprintf("primary: execute, item_id: %s, params: {action: %s%s}", hook.ControlID, verdict, params)
}

func (h *house) hooks(list ...string) { h.write(hooksFile, "hooks:\n"+strings.Join(list, "")) }

// toolItems makes items of the tools that hooks use.
func (h *house) toolItems(names ...string) {
	for _, name := range names {
		h.write(".ai/tools/test/"+name+".yaml", "version: 1.0.0\ntool_type: builtin\nexecutor_id: rye/core/builtin\ncategory: test\n"+
			"description: x\nparameters: {type: object, properties: {word: {type: string}, most: {type: integer}, cost: {type: integer}}, additionalProperties: false}\n")
	}
}

// fired are the hooks that fired in a thread, by id, with what came of the last.
func (h *house) fired(id thread.ID) (order []string, by map[string]transcript.HookFired) {
	h.t.Helper()
	by = map[string]transcript.HookFired{}
	for _, f := range events[transcript.HookFired](h, id, thread.EventHookFired) {
		order, by[f.HookID] = append(order, f.HookID), f
	}
	return order, by
}

// withTask gives the directive of a job metadata.
func (h *house) withTask(metadata string) func(*thread.Meta) {
	return func(m *thread.Meta) {
		h.write(".ai/directives/test/task.md", fmt.Sprintf(heir, "task", "", metadata))
		m.DirectiveHash = h.hashOf("test/task")
	}
}

// TestHooksOfAllLayers: what hooks of all layers give stands around the directive
// in their order, and each is on record.
func TestHooksOfAllLayers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(toText)
	user, roots := h.user, h.roots()
	roots.System = fstest.MapFS{"config/agent/hook_conditions.yaml": &fstest.MapFile{Data: []byte(
		"builtin_hooks:\n" + inHooks("l2", "thread_started", "", "primary: fetch, item_type: knowledge, item_id: k/l2") +
			"infra_hooks:\n" + inHooks("l4", "thread_started", "", "primary: execute, item_type: knowledge, item_id: k/l4"))}}
	h.settings.Hooks = func() (hook.Set, []string, error) { return hook.Load(config.New(roots).Read(), nil) }
	h.writeAt(user, hooksFile, "hooks:\n"+inHooks("l0", "thread_started", "", "primary: fetch, item_id: k/l0")+
		inHooks("who", "build_system_prompt", "", "primary: fetch, item_id: k/who"))
	h.hooks(inHooks("l3", "thread_started", "{path: inputs.who, op: eq, value: Ada}", "primary: fetch, item_id: k/l3"),
		"  - {id: behind, event: thread_started, position: after, wrap: false, action: {primary: fetch, item_id: k/behind}}\n",
		inHooks("other", "thread_started", "{path: inputs.who, op: eq, value: Bob}", "primary: fetch, item_id: k/l3"),
		inHooks("unwanted", "thread_started", "", "primary: fetch, item_id: k/l3"),
		inHooks("optional", "thread_started", "", "primary: fetch, item_type: knowledge, item_id: k/gone"))
	for _, id := range []string{"l0", "l1", "l2", "l3", "l4", "who", "behind"} {
		h.write(".ai/knowledge/k/"+id+".md", id+" for ${inputs.who} at depth ${depth}.\n")
	}
	rec := h.run(job{capabilities: []string{}, inputs: map[string]any{"who": "Ada"}, meta: h.withTask(
		`<hooks><hook id="l1" event="thread_started"><fetch item_type="knowledge" item_id="k/l1"/></hook></hooks><context><suppress>unwanted</suppress></context>`)})
	if rec.Status != thread.Completed || len(rec.Outcome.Warnings) != 1 || !strings.Contains(rec.Outcome.Warnings[0], `hook "optional"`) {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome)
	}
	asked := h.server.Requests()[0]
	if asked.System != "<who id=\"k/who\" type=\"knowledge\">\nwho for Ada at depth 0.\n</who>" {
		t.Errorf("system prompt %q", asked.System)
	}
	at := -1
	for _, part := range []string{"<l0 id=\"k/l0\" type=\"knowledge\">\nl0 for Ada", "l1 for Ada", "l2 for Ada", "l3 for Ada", "l4 for Ada", "Do the task.", "behind for Ada"} {
		next := strings.Index(asked.Last, part)
		if next <= at || strings.Count(asked.Last, part) != 1 {
			t.Errorf("%q stands at %d of\n%s", part, next, asked.Last)
		}
		at = next
	}
	order, by := h.fired(rec.ThreadID)
	if got := strings.Join(order, " "); got != "who l0 l1 l2 l3 behind optional l4" {
		t.Errorf("fired %s", got)
	}
	if f := by["l3"]; f.Layer != 3 || f.Event != "thread_started" || f.Error != "" || !strings.HasSuffix(f.Source, hooksFile+":2") {
		t.Errorf("%+v", f)
	}
	var injected []string
	for _, e := range events[transcript.ContextInjected](h, rec.ThreadID, thread.EventContextInjected) {
		injected = append(injected, e.Position+" "+e.ItemID+" of "+e.HookID)
	}
	if got := strings.Join(injected, ", "); got != "system k/who of who, before k/l0 of l0, before k/l1 of l1, before k/l2 of l2, "+
		"before k/l3 of l3, after k/behind of behind, before k/l4 of l4" {
		t.Errorf("context_injected: %s", got)
	}
	if types := h.eventTypes(rec.ThreadID); types[0] != "thread_started" {
		t.Errorf("events %q", types)
	}
}

// TestContinuedThread: a thread that continues another one fires its own event.
func TestContinuedThread(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(toText)
	h.hooks(inHooks("started", "thread_started", "", "primary: fetch, item_id: k/x"),
		inHooks("continued", "thread_continued", "", "primary: fetch, item_id: k/x"))
	h.write(".ai/knowledge/k/x.md", "After ${previous_thread_id}.\n")
	rec := h.run(job{capabilities: []string{}, meta: func(m *thread.Meta) { m.ContinuationOf = "test/task-1" }})
	if order, _ := h.fired(rec.ThreadID); !slices.Equal(order, []string{"continued"}) || !strings.Contains(h.asked()[0], "After test/task-1.") {
		t.Errorf("fired %s\n%s", order, h.asked()[0])
	}
}

// TestReturnHook: the hook of directive_return sees outputs that were accepted,
// and its failure is a warning.
func TestReturnHook(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: rye_directive_return, input: {path: 7}}]}\n" +
		"  - {tool_calls: [{name: rye_directive_return, input: {path: /tmp/x}}]}\n")
	h.toolItems("echo", "fail")
	h.hooks(inHooks("note", "directive_return", "{path: outputs.path, op: exists}", "primary: execute, item_type: tool, item_id: test/echo, params: {word: 'got ${outputs.path}'}"),
		inHooks("fails", "directive_return", "", "primary: execute, item_type: tool, item_id: test/fail"))
	rec := h.run(job{outputs: `<output name="path" type="string" required="true">p</output>`})
	order, by := h.fired(rec.ThreadID)
	if rec.Status != thread.Completed || !slices.Equal(order, []string{"note", "fails"}) || by["note"].Error != "" || !strings.Contains(by["fails"].Error, "disk full") {
		t.Errorf("%s, fired %+v", rec.Status, by)
	}
	if len(rec.Outcome.Warnings) != 1 {
		t.Errorf("warnings %q", rec.Outcome.Warnings)
	}
}

// child registers a thread that a hook starts, and ends it.
func (h *house) child(o thread.Outcome) func(context.Context, action.Caller, action.StartRequest) (any, error) {
	return func(ctx context.Context, c action.Caller, r action.StartRequest) (any, error) {
		n := store.NewThread{Kind: thread.KindDirective, Directive: r.Directive, ParentID: c.Env.ThreadID, MaxSpawns: 9, ParentEnded: c.Hook.Ended, Now: time.Now()}
		rec, _, err := store.Register(ctx, h.store, n, nil)
		if err != nil {
			return nil, err
		}
		c.Started(rec.ThreadID, r.Directive)
		if _, err := storetest.As(h.store).Apply(ctx, store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "here"}, time.Now())); err != nil {
			return nil, err
		}
		change, err := store.Finished(rec.ThreadID, o, nil, time.Now())
		if err != nil {
			return nil, err
		}
		_, err = storetest.As(h.store).Apply(ctx, change)
		return map[string]any{"thread_id": rec.ThreadID}, err
	}
}

// TestHookStartsThread: what a child of a hook returns is text, and neither it nor
// those below fire the hook again.
func TestHookStartsThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, failed := range []bool{false, true} {
		h := newHouse(t)
		h.script(toText)
		h.hooks(inHooks("ask", "thread_started", "", "primary: execute, item_type: directive, item_id: test/task, params: {who: '${inputs.who}'}"),
			inHooks("above", "thread_started", "", "primary: fetch, item_id: k/x"))
		outcome := thread.Outcome{State: thread.Completed, Result: "${inputs.who} says hello"}
		if failed {
			outcome = thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x", Message: "no way"}}
		}
		h.threads.child = h.child(outcome)
		rec := h.run(job{
			capabilities: []string{"rye.execute.directive.test.task"}, inputs: map[string]any{"who": "${limits.turns}"},
			meta: func(m *thread.Meta) { m.Firing = []string{"above"} },
		})
		order, by := h.fired(rec.ThreadID)
		if rec.Status != thread.Completed || !slices.Equal(order, []string{"ask"}) || strings.Contains(by["ask"].Error, "no way") != failed {
			t.Fatalf("%s, fired %+v", rec.Status, by)
		}
		if has := strings.Contains(h.asked()[0], "${inputs.who} says hello\n</task>"); has == failed {
			t.Errorf("first message\n%s", h.asked()[0])
		}
		caller, start := h.threads.callers[0], h.threads.starts[0]
		if c := caller.Hook; c == nil || c.Exempt || c.Ended || !slices.Equal(c.Firing, []string{"above", "ask"}) {
			t.Errorf("caller %+v", caller.Hook)
		}
		if !maps.Equal(start.Inputs, map[string]any{"who": "${limits.turns}"}) {
			t.Errorf("inputs %v", start.Inputs)
		}
		if kids := events[transcript.ChildStarted](h, rec.ThreadID, thread.EventChildThreadStarted); len(kids) != 1 || kids[0].HookID != "ask" {
			t.Errorf("children %+v", kids)
		}
	}
}

// TestHookAttacks: what a hook of a project may not do is refused, and the thread
// goes on.
func TestHookAttacks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct{ act, says string }{
		"a denied tool":        {"primary: execute, item_type: tool, item_id: test/echo", "rye.execute.tool.test.echo"},
		"a denied directive":   {"primary: execute, item_type: directive, item_id: test/task", "rye.execute.directive.test.task"},
		"a denied item":        {"primary: fetch, item_type: tool, item_id: test/echo", "rye.fetch.tool.test.echo"},
		"denied search":        {"primary: search, params: {query: x}", "search"},
		"denied signing":       {"primary: sign, item_type: knowledge, item_id: k/x", "rye.sign.knowledge.k.x"},
		"an id that climbs":    {"primary: fetch, item_type: knowledge, item_id: 'k/${inputs.who}'", ".."},
		"an internal tool":     {"primary: execute, item_id: '${inputs.tool}'", "for hooks of the system only"},
		"another project":      {"primary: fetch, item_type: knowledge, item_id: k/x, params: {project_path: /}", "own project"},
		"an unknown argument":  {"primary: fetch, item_type: knowledge, item_id: k/x, params: {as: root}", "as"},
		"an input as template": {"primary: fetch, item_type: knowledge, item_id: k/x, params: {project_path: '${inputs.template}'}", "own project"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script(toText)
			h.toolItems("echo")
			h.write(".ai/knowledge/k/x.md", "Secret.\n")
			h.hooks(inHooks("h", "thread_started", "", c.act))
			rec := h.run(job{capabilities: []string{}, inputs: map[string]any{"who": "../../x", "tool": "rye/agent/threads/internal/emitter", "template": "${project_path}"}})
			_, by := h.fired(rec.ThreadID)
			if rec.Status != thread.Completed || !strings.Contains(by["h"].Error, c.says) || strings.Contains(h.asked()[0], "Secret") {
				t.Errorf("%s, %+v", rec.Status, by["h"])
			}
		})
	}
}

// TestInternalInDirective: that a directive names a tool of the system is found
// before anything runs.
func TestInternalInDirective(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(toText)
	rec := h.run(job{meta: h.withTask(`<hooks><hook id="h" event="after_step"><execute item_type="tool" item_id="rye/agent/threads/internal/emitter"/></hook></hooks>`)})
	if rec.Status != thread.Error || rec.Cost.Turns != 0 || !strings.Contains(rec.Outcome.Error.Message, "for hooks of the system only") {
		t.Errorf("%s %+v", rec.Status, rec.Outcome.Error)
	}
}

// TestSystemHookIsExempt: what is part of the program needs no capabilities.
func TestSystemHookIsExempt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(toText)
	roots := h.roots()
	roots.System = fstest.MapFS{"config/agent/hook_conditions.yaml": &fstest.MapFile{Data: []byte(
		"builtin_hooks:\n" + inHooks("b", "thread_started", "", "primary: execute, item_type: tool, item_id: test/echo, params: {word: Told}"))}}
	h.settings.Hooks = func() (hook.Set, []string, error) { return hook.Load(config.New(roots).Read(), nil) }
	h.toolItems("echo")
	h.run(job{capabilities: []string{}})
	if !strings.Contains(h.asked()[0], `{"word":"Told"}`) {
		t.Errorf("first message\n%s", h.asked()[0])
	}
}

// TestEndlessHook: a hook that does not end has its time, and the thread goes on.
func TestEndlessHook(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, name := range []string{"wait", "stubborn"} {
		h := newHouse(t)
		h.script(toText)
		h.toolItems(name)
		h.change = func(r *run) { r.patience = time.Millisecond }
		h.hooks("  - {id: h, event: thread_started, timeout: 0.01, action: {primary: execute, item_type: tool, item_id: test/" + name + "}}\n")
		rec := h.run(job{})
		close(h.tools.release)
		if _, by := h.fired(rec.ThreadID); rec.Status != thread.Completed || !strings.Contains(by["h"].Error, "longer than its timeout") {
			t.Errorf("%s: %s, %+v", name, rec.Status, by["h"])
		}
	}
}

// TestHookIntegrity: an item that may not be used ends the thread, which says that
// a person has to look at it, and names no command.
func TestHookIntegrity(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(toText)
	h.write(".ai/knowledge/k/x.md", "Told.\n")
	h.hooks(inHooks("h", "thread_started", "", "primary: fetch, item_type: knowledge, item_id: k/x"))
	rec := h.run(job{capabilities: []string{}, meta: func(m *thread.Meta) {
		h.mode = trust.Strict
		m.DirectiveHash = h.signDirective()
	}})
	if p := rec.Outcome.Error; rec.Status != thread.Error || p.Code != "integrity" || !strings.Contains(p.Message, `hook "h"`) ||
		!strings.Contains(p.Message, "a person has to look at it") || strings.Contains(p.Message, "rye-mcp") || rec.Cost.Turns != 0 {
		t.Errorf("%s %+v", rec.Status, p)
	}
}

// TestAfterComplete: the last hooks run when the end is known to everybody, and
// change nothing of it. Their actions are on record below the end.
func TestAfterComplete(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(toText)
	h.toolItems("act", "fail")
	var id thread.ID
	freed, during := 0, thread.Record{}
	h.tools.act = func() error {
		var err error
		during, err = h.store.Get(context.Background(), id)
		return err
	}
	h.tools.big = "x"
	h.threads.child = h.child(thread.Outcome{State: thread.Completed, Result: "late"})
	h.hooks(inHooks("look", "after_complete", "{all: [{path: status, op: eq, value: completed}, {path: cost.turns, op: eq, value: 1}, {path: project_path, op: exists}]}",
		"primary: execute, item_type: tool, item_id: test/act"),
		inHooks("fails", "after_complete", "", "primary: execute, item_type: tool, item_id: test/fail"),
		inHooks("starts", "after_complete", "{path: thread_id, op: contains, value: test/task}", "primary: execute, item_type: directive, item_id: test/task"))
	id = h.register(job{capabilities: []string{"rye.execute.*"}, limits: func(l *thread.Limits) { l.Turns = 1 }})
	h.change = func(r *run) { r.SlotFree = func(context.Context) { freed++ } }
	rec := h.end(t.Context(), id)
	if rec.Status != thread.Completed || during.Status != thread.Completed || len(rec.Outcome.Warnings) > 0 || freed != 1 {
		t.Errorf("%s, while the hooks ran %s, %q, slot freed %d times", rec.Status, during.Status, rec.Outcome.Warnings, freed)
	}
	order, by := h.fired(id)
	if !slices.Equal(order, []string{"look", "fails", "starts"}) || by["look"].Error != "" || !strings.Contains(by["fails"].Error, "disk full") || by["starts"].Error != "" {
		t.Errorf("fired %+v", by)
	}
	if c := h.threads.callers[0].Hook; !c.Ended || !slices.Equal(c.Firing, []string{"starts"}) {
		t.Errorf("caller %+v", c)
	}
	all := h.eventTypes(id)
	behind := all[slices.Index(all, "thread_completed")+1:]
	if !slices.Equal(behind, []string{"checkpoint", "hook_fired", "hook_fired", "child_thread_started", "hook_fired", "checkpoint"}) {
		t.Errorf("events %s", all)
	}
}

// TestAfterCompleteAlways: the last hooks run once however a thread completes or fails,
// and know what its directive is about.
func TestAfterCompleteAlways(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const output = `<output name="path" type="string" required="true">p</output>`
	const returns = "turns:\n  - {tool_calls: [{name: rye_directive_return, input: {path: /tmp/x}}]}\n"
	for name, c := range map[string]struct {
		script, outputs string
		via             thread.Via
		limits          func(*thread.Limits)
		state           thread.State
	}{
		"text":             {script: toText, state: thread.Completed},
		"outputs":          {script: returns, outputs: output, state: thread.Completed},
		"a successor":      {script: toText, via: thread.ViaHandoff, state: thread.Completed},
		"resumed":          {script: toText, via: thread.ViaResume, state: thread.Completed},
		"a copy":           {script: toText, via: thread.ViaFork, state: thread.Completed},
		"outputs, resumed": {script: returns, outputs: output, via: thread.ViaResume, state: thread.Completed},
		"a limit":          {script: "turns:\n  - {tool_calls: [{name: test_echo, input: {word: a}}]}\n", limits: func(l *thread.Limits) { l.Turns = 1 }, state: thread.Error},
		"the model fails":  {script: "turns:\n  - error: {status: 400, type: invalid_request_error, message: no}\n", state: thread.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script(c.script)
			h.toolItems("echo")
			h.hooks(inHooks("last", "after_complete", "{path: directive_text, op: contains, value: task}",
				"primary: execute, item_type: tool, item_id: test/echo, params: {word: '${directive_text}'}"))
			id := h.register(job{outputs: c.outputs, limits: c.limits})
			if c.via != "" {
				given := thread.Continuation{Via: c.via}
				if c.via == thread.ViaResume {
					given.Message = "Go on."
				}
				h.continues(id, given, handedOn()...)
			}
			rec := h.end(t.Context(), id)
			order, by := h.fired(id)
			if rec.Status != c.state || !slices.Equal(order, []string{"last"}) || by["last"].Error != "" || len(by["last"].Warnings) > 0 {
				t.Errorf("%s %+v, fired %+v", rec.Status, rec.Outcome.Error, by)
			}
		})
	}
}

// TestToolRunHasNoHooks: a tool run is no thread with a directive.
func TestToolRunHasNoHooks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hooks(inHooks("a", "after_complete", "", "primary: search, params: {query: x}"), inHooks("s", "thread_started", "", "primary: search, params: {query: x}"))
	rec := h.run(job{kind: thread.KindTool, tool: "test/echo", inputs: map[string]any{"word": "a"}})
	if order, _ := h.fired(rec.ThreadID); rec.Status != thread.Completed || len(order) > 0 {
		t.Errorf("%s, fired %s", rec.Status, order)
	}
}
