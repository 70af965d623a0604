package loop

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// once is a script that makes some calls and ends.
func once(calls string) string {
	return "turns:\n  - {match: {turn: 1}, tool_calls: [" + calls + "]}\n  - {text: done}\n"
}

// A failure of a call comes back to the model as its result.
func TestFailingCalls(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		calls        string
		capabilities []string
		code         string
		text         string
	}{
		"error":                         {calls: `{name: test_fail}`, code: "tool_failed", text: "disk full"},
		"panic":                         {calls: `{name: test_panic}`, code: "internal", text: "tool test/panic panicked: lost"},
		"panic of another kind of tool": {calls: `{name: test_raw}`, code: "internal", text: "tool test/raw panicked: raw"},
		"invalid JSON":                  {calls: `{name: test_echo, input_json: '{"word": '}`, code: "bad_arguments", text: "not valid JSON"},
		"no object":                     {calls: `{name: test_echo, input_json: '[1]'}`, code: "bad_arguments", text: "object"},
		"undeclared":                    {calls: `{name: test_echo, input: {wort: x}}`, code: "bad_arguments", text: `did you mean`},
		"unknown tool":                  {calls: `{name: test_none}`, code: "not_found", text: "test_echo"},
		"no tools at all":               {calls: `{name: test_none}`, capabilities: []string{}, code: "not_found", text: "there are: none"},
		"denied under its own name": {
			calls: `{name: test_echo}`, capabilities: []string{}, code: "permission_denied", text: "this thread lacks the capability rye.execute.tool.test.echo",
		},
		"no room for it": {
			calls: `{name: test_huge}`, code: "not_found", text: "the tool test/huge is not offered under a name of its own",
		},
		"denied through execute": {
			calls:        `{name: rye_execute, input: {item_type: tool, item_id: rye/file-system/read, parameters: {path: x}}}`,
			capabilities: []string{"rye.execute.tool.test.*"}, code: "permission_denied", text: "rye.execute.tool.rye.file-system.read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.tools.more = []tool.Tool{tool.New(tool.Definition{ID: "test/huge", Description: strings.Repeat("x", 4*palette.DefaultMaxTokens)},
				func(context.Context, tool.Env, struct{}) (any, error) { return "huge", nil })}
			h.script(once(c.calls))
			rec := h.run(job{capabilities: c.capabilities})
			results := h.results(rec.ThreadID)
			if rec.Status != thread.Completed || rec.Outcome.Result != "done" || len(results) != 1 {
				t.Fatalf("%s %+v, %+v", rec.Status, rec.Outcome, results)
			}
			var body struct {
				Success bool
				Code    string
				Error   string
			}
			got := results[0]
			if err := json.Unmarshal([]byte(got.Text), &body); err != nil {
				t.Fatal(err)
			}
			if !got.IsError || body.Success || body.Code != c.code || !strings.Contains(body.Error, c.text) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Tools that a thread reaches by names of their own are not offered through rye_execute
// again, and a call through it works, as bodies of directives have it.
func TestExecuteThatIsNotOffered(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write(".ai/tools/test/echo.yaml", "executor_id: rye/core/builtin\ndescription: Echoes.\n")
	h.script(once(`{name: rye_execute, input: {item_type: tool, item_id: test/echo, parameters: {word: hi}}}`))
	rec := h.run(job{capabilities: []string{"rye.execute.tool.test.*"}})
	results := h.results(rec.ThreadID)
	if rec.Status != thread.Completed || len(results) != 1 || results[0].IsError || !strings.Contains(results[0].Text, `"word":"hi"`) {
		t.Errorf("%s %+v, %+v", rec.Status, rec.Outcome, results)
	}
	offered := h.server.Requests()[0].Tools
	if slices.Contains(offered, "rye_execute") || !slices.Contains(offered, "test_echo") || !slices.Contains(offered, palette.ArtifactName) {
		t.Errorf("offered: %v", offered)
	}
}

// Calls of one turn run at the same time, at most as many as allowed, and their
// results keep the order of the calls.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.settings.ToolConcurrency = 3
	calls := []string{"{name: test_echo, input: {word: first}}"}
	for _, w := range []string{"a", "b", "c", "d", "e"} {
		calls = append(calls, "{name: test_wait, input: {word: "+w+"}}")
	}
	h.script(once(strings.Join(calls, ", ")))
	go func() {
		for range 3 { // three are there at once, or this never ends
			<-h.tools.began
		}
		close(h.tools.release)
	}()
	rec := h.run(job{})
	if rec.Status != thread.Completed || h.tools.most != 3 {
		t.Errorf("%s, %d at once", rec.Status, h.tools.most)
	}
	messages, err := h.messages(rec.ThreadID)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, b := range messages[2].Blocks {
		var in word
		if err := json.Unmarshal([]byte(b.Text), &in); err != nil {
			t.Fatal(err)
		}
		words = append(words, in.Word)
	}
	if got := strings.Join(words, " "); got != "first a b c d e" || messages[2].Role != llm.User {
		t.Errorf("results in the order %q", got)
	}
}

// A child's parent and capabilities come from the runtime.
func TestSpawn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(once("{name: rye_execute, input: {item_type: directive, item_id: test/task, thread: fork, async: true}}"))
	rec := h.run(job{capabilities: []string{"rye.execute.directive.test.task"}})
	if rec.Status != thread.Completed || len(h.threads.starts) != 1 {
		t.Fatalf("%s, %+v, results %+v", rec.Status, h.threads.starts, h.results(rec.ThreadID))
	}
	caller := h.threads.callers[0]
	if !caller.InThread || caller.Env.ThreadID != rec.ThreadID || caller.Env.Project != h.project ||
		caller.Allow("rye.execute.directive.test.task") != nil || caller.Allow("rye.execute.directive.test.other") == nil {
		t.Errorf("caller %+v", caller)
	}
	started := events[transcript.ChildStarted](h, rec.ThreadID, thread.EventChildThreadStarted)
	if len(started) != 1 || started[0].ThreadID != "test/child-1" || started[0].CallID == "" {
		t.Errorf("events %+v", started)
	}
}

func TestBackgroundTool(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		tool         string
		inputs       map[string]any
		capabilities []string
		state        thread.State
		said         string // data, result or error
	}{
		"result":                            {tool: "test/echo", inputs: map[string]any{"word": "x"}, state: thread.Completed, said: `{"word":"x"}`},
		"large result":                      {tool: "test/big", state: thread.Completed, said: "characters left out"},
		"integer that is too large to sign": {tool: "test/number", state: thread.Completed, said: "1152921504606846977"},
		"error":                             {tool: "test/fail", state: thread.Error, said: "tool_failed: test/fail failed: disk full"},
		"panic":                             {tool: "test/raw", state: thread.Error, said: "internal: tool test/raw panicked"},
		"bad parameters":                    {tool: "test/echo", inputs: map[string]any{"x": 1}, state: thread.Error, said: "bad_arguments"},
		"denied":                            {tool: "test/echo", capabilities: []string{"rye.execute.tool.rye.*"}, state: thread.Error, said: "permission_denied"},
		"unknown":                           {tool: "test/none", state: thread.Error, said: "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			if c.inputs == nil {
				c.inputs = map[string]any{}
			}
			rec := h.run(job{kind: thread.KindTool, tool: c.tool, inputs: c.inputs, capabilities: c.capabilities, unbudgeted: true})
			said := string(rec.Outcome.Data) + rec.Outcome.Result
			if p := rec.Outcome.Error; p != nil {
				said = p.Code + ": " + p.Message
			}
			if rec.Status != c.state || !strings.Contains(said, c.said) {
				t.Errorf("%s %.200q", rec.Status, said)
			}
		})
	}
}

func TestBackgroundToolIsStopped(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.register(job{kind: thread.KindTool, tool: "test/wait", inputs: map[string]any{}, unbudgeted: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		<-h.tools.began
		cancel(&thread.SignalError{Signal: "SIGINT"})
	}()
	if rec := h.end(ctx, id); rec.Status != thread.Cancelled || rec.Outcome.Error.Signal != "SIGINT" {
		t.Errorf("%s %+v", rec.Status, rec.Outcome.Error)
	}
}

func TestCapabilitiesFile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(doneScript)
	rec := h.run(job{capabilities: []string{"rye.execute.tool.test.echo"}})
	text, err := os.ReadFile(h.folder(rec.ThreadID).Capabilities())
	if err != nil || !strings.Contains(string(text), "`test_echo` (test/echo)") || strings.Contains(string(text), "test_fail") {
		t.Errorf("%s, %v", text, err)
	}
	if err := sign.Check(text, ".md", records.CapabilitiesName(rec.ThreadID), h.key); err != nil {
		t.Errorf("its signature: %v", err)
	}
}
