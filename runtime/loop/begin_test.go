package loop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

const heir = "```xml\n<directive name=\"%s\" version=\"1.0.0\" extends=\"%s\">\n<metadata><model tier=\"general\"/>%s</metadata>\n" +
	"</directive>\n```\n\nDo the task.\n"

// heirs makes the directive of a job extend test/mid and that test/base, with
// knowledge in every position, and puts the chain on record as the spawner does.
func (h *house) heirs(m *thread.Meta) {
	h.t.Helper()
	h.write(".ai/knowledge/who.md", "You are ${model} at depth ${depth}.\n")
	h.write(".ai/knowledge/rules.md", "Obey ${nobody}.\n")
	h.write(".ai/knowledge/list.md", "Check it.\n")
	h.write(".ai/directives/test/base.md", fmt.Sprintf(heir, "base", "", "<context><system>who</system></context>"))
	h.write(".ai/directives/test/mid.md", fmt.Sprintf(heir, "mid", "test/base", "<context><before>rules</before></context>"))
	h.write(".ai/directives/test/task.md", fmt.Sprintf(heir, "task", "test/mid", "<context><after>list</after></context>"))
	h.recordChain(m)
}

// recordChain writes the hashes of the directives into thread.json.
func (h *house) recordChain(m *thread.Meta) {
	h.t.Helper()
	m.DirectiveHash = h.hashOf("test/task")
	m.Chain = []thread.ChainLink{
		{Directive: "test/mid", Hash: h.hashOf("test/mid")}, {Directive: "test/base", Hash: h.hashOf("test/base")},
	}
}

func (h *house) hashOf(directive string) string {
	h.t.Helper()
	found, err := h.resolver().Find(item.Directive, directive)
	if err != nil {
		h.t.Fatal(err)
	}
	return found.Hash
}

// signAll signs the items that heirs has written, but for one.
func (h *house) signAll(except string) {
	h.t.Helper()
	for kind, ids := range map[item.Kind][]string{
		item.Directive: {"test/task", "test/mid", "test/base"}, item.Knowledge: {"who", "rules", "list"},
	} {
		for _, id := range ids {
			found, err := h.resolver().Find(kind, id)
			if err != nil {
				h.t.Fatal(err)
			}
			if id == except {
				continue
			}
			h.signFound(found)
		}
	}
}

// The context that a directive inherits stands in the first request and on record.
func TestContextIsInjected(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {text: Done.}\n")
	rec := h.run(job{capabilities: []string{}, meta: func(m *thread.Meta) {
		h.heirs(m)
		m.Route = &thread.Route{Hook: "h", Layer: 3, Source: "hooks.yaml:2"}
	}})
	if rec.Status != thread.Completed {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome.Error)
	}
	const system = "<who id=\"who\" type=\"knowledge\">\nYou are fake/small at depth 0.\n</who>"
	asked := h.server.Requests()[0]
	if asked.System != system {
		t.Errorf("system prompt %q", asked.System)
	}
	before, after := strings.Index(asked.Last, "Obey ."), strings.Index(asked.Last, "Check it.")
	if body := strings.Index(asked.Last, "Do the task."); before < 0 || body < before || after < body {
		t.Errorf("first message\n%s", asked.Last)
	}
	if told := events[transcript.SystemPrompt](h, rec.ThreadID, thread.EventSystemPrompt); len(told) != 1 || told[0].Text != system {
		t.Errorf("system_prompt %+v", told)
	}
	var injected []string
	for _, e := range events[transcript.ContextInjected](h, rec.ThreadID, thread.EventContextInjected) {
		found, err := h.resolver().Find(item.Knowledge, e.ItemID)
		if err != nil || e.Hash != found.Hash || e.Bytes == 0 {
			t.Errorf("context_injected %+v, %v", e, err)
		}
		injected = append(injected, e.Position+" "+e.ItemID+" of "+e.Directive)
	}
	if got := strings.Join(injected, ", "); got != "system who of test/base, before rules of test/mid, after list of test/task" {
		t.Errorf("context_injected: %s", got)
	}
	started := events[transcript.ThreadStarted](h, rec.ThreadID, thread.EventThreadStarted)[0]
	if len(started.Warnings) != 1 || !strings.Contains(started.Warnings[0], "${nobody}") {
		t.Errorf("warnings %q", started.Warnings)
	}
	fired := events[transcript.HookFired](h, rec.ThreadID, thread.EventHookFired)
	if len(fired) != 1 || fired[0].HookID != "h" || fired[0].Source != "hooks.yaml:2" || fired[0].Result != "extends test/mid" {
		t.Errorf("hook_fired %+v", fired)
	}
}

// The thread's process takes what the directive extends as its spawner saw it,
// or not at all, and asks the trust gate about every item.
func TestChainIsVerifiedAgain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*house, *thread.Meta)
		code   string // empty: the thread completes
		words  string
	}{
		"as it was": {},
		"ancestor edited": {func(h *house, _ *thread.Meta) {
			h.write(".ai/directives/test/base.md", fmt.Sprintf(heir, "base", "", ""))
		}, "invalid_item", "test/base"},
		"ancestor extends another": {func(h *house, _ *thread.Meta) {
			h.write(".ai/directives/test/mid.md", fmt.Sprintf(heir, "mid", "", ""))
		}, "invalid_item", "test/mid"},
		"ancestor made a cycle": {func(h *house, _ *thread.Meta) {
			h.write(".ai/directives/test/base.md", fmt.Sprintf(heir, "base", "test/task", ""))
		}, "invalid_item", "test/task → test/mid → test/base → test/task"},
		"ancestor gone": {func(h *house, _ *thread.Meta) {
			if err := os.Remove(h.project + "/.ai/directives/test/base.md"); err != nil {
				h.t.Fatal(err)
			}
		}, "not_found", "test/base"},
		"a shorter chain on record": {func(_ *house, m *thread.Meta) { m.Chain = m.Chain[:1] }, "invalid_item", "test/base"},
		"context gone": {func(h *house, _ *thread.Meta) {
			if err := os.Remove(h.project + "/.ai/knowledge/rules.md"); err != nil {
				h.t.Fatal(err)
			}
		}, "not_found", "test/mid.md) asks for <before>rules"},
		"context unsigned":  {func(h *house, m *thread.Meta) { h.signedBut("rules", m) }, "integrity", `knowledge "rules"`},
		"ancestor unsigned": {func(h *house, m *thread.Meta) { h.signedBut("test/base", m) }, "integrity", `directive "test/base"`},
		"all signed":        {func(h *house, m *thread.Meta) { h.signedBut("", m) }, "", ""},
		// Of a version that knew no chains: what it extends was not applied.
		"no chain on record": {func(_ *house, m *thread.Meta) { m.Chain = nil }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script("turns:\n  - {text: Done.}\n")
			rec := h.run(job{capabilities: []string{}, meta: func(m *thread.Meta) {
				h.heirs(m)
				if c.change != nil {
					c.change(h, m)
				}
			}})
			switch problem := rec.Outcome.Error; {
			case c.code == "" && rec.Status != thread.Completed:
				t.Errorf("%s %+v", rec.Status, problem)
			case c.code != "" && (problem == nil || problem.Code != c.code || !strings.Contains(problem.Message, c.words) || rec.Cost.Turns != 0):
				t.Errorf("%s %+v", rec.Status, problem)
			}
		})
	}
}

// signedBut lets signatures count, and signs all but one item.
func (h *house) signedBut(except string, m *thread.Meta) {
	h.t.Helper()
	h.mode = trust.Strict
	h.signAll(except)
	h.recordChain(m)
}
