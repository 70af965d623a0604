package loop

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

const summing = "```xml\n<directive name=\"sum\" version=\"1.0.0\">\n<metadata><model tier=\"general\"/></metadata>\n<inputs>INPUTS</inputs>\n" +
	"</directive>\n```\n\nSum up.\n"

// sums sets a summary directive with inputs, and what comes of its thread.
func (h *house) sums(o thread.Outcome, inputs ...string) {
	h.finisher.KnowledgeDir = filepath.Join(h.project, ".ai", "knowledge")
	h.settings.Continuation.SummaryDirective = "test/sum"
	var declared strings.Builder
	for _, name := range inputs {
		declared.WriteString(`<input name="` + name + `" required="true">x</input>`)
	}
	h.write(".ai/directives/test/sum.md", strings.ReplaceAll(summing, "INPUTS", declared.String()))
	h.threads.child = h.child(o)
}

// TestSummary: the summary directive runs as a child of the thread, and what it
// returns becomes knowledge that the successor is given.
func TestSummary(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m := handsOver(h)
	h.script(filling(nearlyFull))
	h.sums(thread.Outcome{State: thread.Completed, Result: "It is half done. " + strings.Repeat("x", 1000)}, "thread_id", "transcript_content", "max_summary_tokens")
	h.settings.Continuation.SummaryModel, h.settings.Continuation.SummaryMaxTokens = "fake/second", 100
	h.settings.Continuation.SummaryLimitOverrides = item.LimitSet{"turns": 2}
	ends := h.threads.child
	h.threads.child = func(ctx context.Context, c action.Caller, r action.StartRequest) (any, error) {
		if deadline, bounded := ctx.Deadline(); !bounded || time.Until(deadline) > 300*time.Second {
			t.Errorf("it may take until %s of the thread's 600 s", deadline)
		}
		return ends(ctx, c, r)
	}
	rec := h.run(job{capabilities: []string{"rye.execute.tool.test.*"}, meta: func(m *thread.Meta) { m.Firing = []string{"above"} }})
	if rec.Status != thread.Continued || len(rec.Outcome.Warnings) > 0 {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome)
	}
	id := "test/task/" + filepath.Base(string(rec.ThreadID)) + "-summary"
	got := m.requests[0]
	if got.SummaryID != id || !strings.HasPrefix(got.Summary, "It is half done. xxx") || utf8.RuneCountInString(got.Summary) > 400 {
		t.Errorf("%q: %q", got.SummaryID, got.Summary)
	}
	found, err := h.resolver().Find(item.Knowledge, "agent/threads/"+id)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := found.Knowledge()
	if err != nil || strings.TrimSpace(doc.Body) != got.Summary || doc.EntryType != "thread_summary" {
		t.Errorf("%+v, %v", doc, err)
	}
	h.mode = trust.Strict
	if _, err := h.deps(rec.ThreadID).Trust.Check(trust.SubjectOf(found)); err != nil {
		t.Error(err)
	}
	caller, start := h.threads.callers[0], h.threads.starts[0]
	if c := caller.Hook; caller.Env.ThreadID != rec.ThreadID || !caller.InThread || !c.Exempt || c.Ended || !slices.Equal(c.Firing, []string{"above"}) {
		t.Errorf("caller %+v %+v", caller, caller.Hook)
	}
	content, _ := start.Inputs["transcript_content"].(string)
	if start.Directive != "test/sum" || start.Async || start.Model != "fake/second" || start.Limits["turns"] != 2 ||
		start.Inputs["thread_id"] != string(rec.ThreadID) || start.Inputs["max_summary_tokens"] != int64(100) ||
		!strings.Contains(content, "Do the task for nobody.") || !strings.Contains(content, "test_echo") {
		t.Errorf("started %+v", start)
	}
	if kids := events[transcript.ChildStarted](h, rec.ThreadID, thread.EventChildThreadStarted); len(kids) != 1 || kids[0].Directive != "test/sum" {
		t.Errorf("children %+v", kids)
	}
}

// TestOtherSummaries: what else a successor is given, or why it has no summary.
func TestOtherSummaries(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	done := thread.Outcome{State: thread.Completed, Result: "By the directive."}
	for name, c := range map[string]struct {
		change func(*house)
		text   string
		warns  string
		runs   int // of the directive
	}{
		"declares nothing": {change: func(h *house) { h.sums(done) }, text: "By the directive.", runs: 1},
		"as an output": {
			change: func(h *house) {
				h.sums(thread.Outcome{State: thread.Completed, Result: "{}", Outputs: map[string]any{"summary": "In a field."}})
			},
			text: "In a field.", runs: 1,
		},
		"fails": {
			change: func(h *house) {
				h.sums(thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x", Message: "no way"}})
			},
			warns: "test/sum: thread test/sum-.* ended as error: no way", runs: 1,
		},
		"says nothing":  {change: func(h *house) { h.sums(thread.Outcome{State: thread.Completed, Result: " "}) }, warns: "returned nothing", runs: 1},
		"is not there":  {change: func(h *house) { h.settings.Continuation.SummaryDirective = "test/none" }, warns: "test/none", runs: 0},
		"is not let in": {change: func(h *house) { h.sums(done); h.threads.child = refuses }, warns: "depth_exceeded", runs: 1},
		"does not end": {
			change: func(h *house) { h.sums(done); h.threads.child = h.endless }, warns: "has not ended", runs: 1,
		},
		"its model is unknown": {
			change: func(h *house) {
				h.sums(done, "transcript_content")
				h.settings.Continuation.SummaryModel = "nowhere/none"
			},
			warns: "test/sum: ", runs: 0,
		},
		"cannot be kept": {change: func(h *house) { h.sums(done); h.finisher.KnowledgeDir = "" }, warns: "no folder for knowledge", runs: 1},
		"handed over":    {change: func(h *house) { h.sums(done); h.threads.child = h.handedOver }, text: "By the last of the chain.", runs: 1},
		"by a hook":      {change: func(h *house) { h.sums(done); h.hookSums("By a hook.") }, text: "By a hook.", runs: 0},
		"by a hook alone": {
			change: func(h *house) { h.hookSums("By a hook.") }, text: "By a hook.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			m := handsOver(h)
			h.script(filling(nearlyFull))
			c.change(h)
			rec := h.run(job{capabilities: []string{"rye.execute.*"}})
			if rec.Status != thread.Continued || m.started != 1 || len(h.threads.starts) != c.runs {
				t.Fatalf("%s %+v, %d starts", rec.Status, rec.Outcome, len(h.threads.starts))
			}
			got := m.requests[0]
			if got.Summary != c.text || (got.SummaryID == "") != (c.text == "") {
				t.Errorf("%q: %q", got.SummaryID, got.Summary)
			}
			switch warnings := strings.Join(rec.Outcome.Warnings, "\n"); {
			case c.warns == "" && warnings != "":
				t.Errorf("warnings %s", warnings)
			case c.warns != "" && !regexp.MustCompile(c.warns).MatchString(warnings):
				t.Errorf("warnings %q, want %s", warnings, c.warns)
			}
		})
	}
}

// TestSummaryOfStranger: a summary that somebody has written counts only when its
// signature does; the summary directive writes another one in its place.
func TestSummaryOfStranger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change      func(*house)
		text, warns string
	}{
		"alone": {warns: "has no summary: knowledge .* is not signed"},
		"with a summary directive": {
			change: func(h *house) { h.sums(thread.Outcome{State: thread.Completed, Result: "By the directive."}) },
			text:   "By the directive.", warns: "is not used: knowledge .* is not signed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			m := handsOver(h)
			h.script(filling(nearlyFull))
			if c.change != nil {
				c.change(h)
			}
			id := h.register(job{meta: func(m *thread.Meta) {
				h.mode = trust.Strict
				m.DirectiveHash = h.signDirective()
			}})
			h.write(".ai/knowledge/"+finish.KnowledgeID(finish.SummaryID("test/task", id))+".md", "By a stranger.\n")
			rec := h.end(t.Context(), id)
			if rec.Status != thread.Continued || len(m.requests) != 1 || m.requests[0].Summary != c.text {
				t.Fatalf("%s %+v %+v", rec.Status, rec.Outcome, m.requests)
			}
			if warnings := rec.Outcome.Warnings; len(warnings) != 1 || !regexp.MustCompile(c.warns).MatchString(warnings[0]) {
				t.Errorf("warnings %q, want %s", warnings, c.warns)
			}
		})
	}
}

// TestOwnSummary: a thread that sums up is not summed up.
func TestOwnSummary(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	handsOver(h)
	h.script(filling(nearlyFull))
	h.sums(thread.Outcome{State: thread.Completed, Result: "x"})
	h.settings.Continuation.SummaryDirective = "test/task"
	if rec := h.run(job{}); rec.Status != thread.Continued || len(h.threads.starts) > 0 {
		t.Errorf("%s, %d starts", rec.Status, len(h.threads.starts))
	}
}

// TestContentRoom: a model is given of a transcript what it can read and its
// thread can pay for, the newest lines.
func TestContentRoom(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	priced := func(window int, input int64) llm.Model {
		return llm.Model{ContextWindow: window, Price: llm.Price{Input: input}, Priced: true}
	}
	for _, c := range []struct {
		reader llm.Model
		spend  thread.Micros
		want   int64
	}{
		{priced(1_000_000, 0), 0, maxContent},
		{priced(32_000, 0), 0, 64_000},
		{priced(0, 0), 0, maxContent},
		{priced(1_000_000, 1_000_000), 100_000, 50_000},
		{priced(1_000_000, 1_000_000), 0, maxContent},
	} {
		if got := contentRoom(c.reader, c.spend); got != c.want {
			t.Errorf("%+v with %s: %d, want %d", c.reader, c.spend, got, c.want)
		}
	}
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: aé}}]}\n  - text: Done.\n")
	id := h.register(job{})
	r := newRun(h.deps(id))
	if _, err := r.toEnd(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, err := summarizer{r}.transcriptContent(maxContent)
	if err != nil || !strings.Contains(whole, "Do the task") {
		t.Fatalf("%s, %v", whole, err)
	}
	for most := range int64(len(whole)) {
		part, err := summarizer{r}.transcriptContent(most)
		lines, cut := strings.CutPrefix(part, "[the beginning of the transcript is left out]\n\n")
		if err != nil || !cut || int64(len(lines)) > most || !strings.HasSuffix(whole, lines) || lines != "" && !strings.HasSuffix(whole[:len(whole)-len(lines)], "\n") {
			t.Fatalf("%d bytes: %q, %v", most, part, err)
		}
	}
}

// refuses is an orchestrator that starts nothing.
func refuses(context.Context, action.Caller, action.StartRequest) (any, error) {
	return nil, errors.New("depth_exceeded")
}

// endless registers a child that goes on.
func (h *house) endless(ctx context.Context, c action.Caller, r action.StartRequest) (any, error) {
	n := store.NewThread{Kind: thread.KindDirective, Directive: r.Directive, ParentID: c.Env.ThreadID, MaxSpawns: 9, Now: time.Now()}
	rec, _, err := store.Register(ctx, h.store, n, nil)
	if err == nil {
		c.Started(rec.ThreadID, r.Directive)
	}
	return json.RawMessage("{}"), err
}

// handedOver registers a child that was continued, and its successor.
func (h *house) handedOver(ctx context.Context, c action.Caller, r action.StartRequest) (any, error) {
	if _, err := h.endless(ctx, c, r); err != nil {
		return nil, err
	}
	rows, _, err := h.store.List(ctx, store.Filter{Directive: r.Directive})
	if err != nil {
		return nil, err
	}
	first := rows[0].ThreadID
	if _, err := storetest.As(h.store).Apply(ctx, store.Claimed(first, thread.Process{PID: 1, Host: "here"}, time.Now())); err != nil {
		return nil, err
	}
	n := store.NewThread{Kind: thread.KindDirective, Directive: r.Directive, ContinuationOf: first, Handoff: true, Now: time.Now()}
	next, _, err := store.Register(ctx, h.store, n, nil)
	if err != nil {
		return nil, err
	}
	changes := []func() (store.Change, error){
		func() (store.Change, error) {
			return store.Finished(first, thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: next.ThreadID}}, nil, time.Now())
		},
		func() (store.Change, error) {
			return store.Claimed(next.ThreadID, thread.Process{PID: 1, Host: "here"}, time.Now()), nil
		},
		func() (store.Change, error) {
			return store.Finished(next.ThreadID, thread.Outcome{State: thread.Completed, Result: "By the last of the chain."}, nil, time.Now())
		},
	}
	for _, change := range changes {
		made, err := change()
		if err != nil {
			return nil, err
		}
		if _, err := storetest.As(h.store).Apply(ctx, made); err != nil {
			return nil, err
		}
	}
	return json.RawMessage("{}"), nil
}

// hookSums has a hook write the summary of a thread that hands over.
func (h *house) hookSums(text string) {
	h.toolItems("act")
	h.hooks(inHooks("sum", "after_complete", "{path: status, op: eq, value: continued}", "primary: execute, item_type: tool, item_id: test/act"))
	h.tools.act = func() error {
		running, _, err := h.store.List(context.Background(), store.Filter{Directive: "test/task"})
		if err != nil {
			return err
		}
		id := finish.KnowledgeID(finish.SummaryID("test/task", running[0].ThreadID))
		path := filepath.Join(h.project, ".ai", "knowledge", filepath.FromSlash(id)+".md")
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text+"\n"), 0o600))
	}
}
