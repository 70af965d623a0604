package loop

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// endOf is a result that tells of the end of threads.
type endOf struct{ IDs []thread.ID }

// Tells is that of results of the orchestrator.
func (e endOf) Tells() (told []thread.Told) {
	for _, id := range e.IDs {
		told = append(told, thread.Told{ThreadID: id, Status: thread.Completed})
	}
	return told
}

// registerChild registers a thread that runs.
func (h *house) registerChild(ctx context.Context, id thread.ID) {
	h.t.Helper()
	n := store.NewThread{ID: id, Kind: thread.KindDirective, Directive: "test/child", Model: "fake/small", Now: time.Now()}
	_, _, err := h.store.Register(ctx, n)
	if err == nil {
		_, err = storetest.As(h.store).Apply(ctx, store.Claimed(id, thread.Process{PID: 1}, time.Now()))
	}
	if err != nil {
		h.t.Error(err)
	}
}

// completes ends it.
func (h *house) completes(ctx context.Context, id thread.ID) {
	h.t.Helper()
	change, err := store.Finished(id, thread.Outcome{State: thread.Completed, Result: "secret of the child"}, &thread.Cost{Turns: 2, Spend: 1500}, time.Now())
	if err == nil {
		_, err = storetest.As(h.store).Apply(ctx, change)
	}
	if err != nil {
		h.t.Error(err)
	}
}

// startsTwo is a thread that starts two others and then calls two tools, one after the
// other.
const startsTwo = `
turns:
  - match: {turn: 1}
    tool_calls:
      - {name: rye_execute, input: {item_type: directive, item_id: test/task, async: true}}
      - {name: rye_execute, input: {item_type: directive, item_id: test/task, async: true}}
  - match: {turn: 2}
    tool_calls: [{name: test_act, input: {}}]
  - match: {turn: 3}
    tool_calls: [{name: test_echo, input: {}}]
  - text: done
`

// TestEndsAreTold: a thread is told in one line when one ends that it has started, once,
// before its next call, and not where a result has told it. So are those that continue it.
func TestEndsAreTold(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, off := range map[string]bool{"on": false, "off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.settings.Notes.Ends = !off
			h.settings.ToolConcurrency = 1
			h.script(startsTwo)
			started := []thread.ID{"test/a-1", "test/b-1"}
			next := 0
			h.threads.child = func(ctx context.Context, c action.Caller, r action.StartRequest) (any, error) {
				id := started[next]
				next++
				h.registerChild(ctx, id)
				c.Started(id, r.Directive)
				if id == started[1] {
					h.completes(ctx, id)
					return endOf{IDs: []thread.ID{id}}, nil // it was waited for
				}
				return map[string]any{"thread_id": id}, nil
			}
			h.tools.act = func() error { h.completes(t.Context(), started[0]); return nil }
			id := h.register(job{capabilities: []string{"rye.execute.directive.*", "rye.execute.tool.*"}})
			rec := h.end(t.Context(), id)
			if rec.Status != thread.Completed {
				t.Fatalf("%s %+v", rec.Status, rec.Outcome)
			}
			told := events[transcript.Message](h, id, thread.EventMessage)
			if off {
				if len(told) > 0 {
					t.Errorf("told %+v", told)
				}
				return
			}
			want := "[Thread test/a-1 (test/child), which you have started, is completed after 2 turns and $0.0015. wait_threads with its id gives what came of it.]"
			if len(told) != 1 || told[0].Ended != started[0] || told[0].Blocks[0].Text != want {
				t.Fatalf("told %+v", told)
			}
			if asked := h.asked(); !strings.Contains(asked[2], want) || strings.Contains(asked[3], want) {
				t.Errorf("asked %q", asked)
			}
			left, err := transcript.Children(h.finisher.Records.Of(id).Transcript(), nil)
			if err != nil || len(left) > 0 {
				t.Errorf("left to be told: %v, %v", left, err)
			}
		})
	}
}

// TestEndsOfChildrenBefore: a thread that continues another is told of the ends of what
// that one has started.
func TestEndsOfChildrenBefore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {}}]}\n  - text: done\n")
	for _, id := range []thread.ID{"test/a-1", "test/b-1"} {
		h.registerChild(t.Context(), id)
	}
	h.completes(t.Context(), "test/a-1")
	id := h.register(job{})
	h.continues(id, thread.Continuation{Via: thread.ViaResume, Message: "on", Position: 2, Children: []thread.ID{"test/a-1", "test/b-1"}}, handedOn()...)
	rec := h.end(t.Context(), id)
	told := events[transcript.Message](h, id, thread.EventMessage)
	if rec.Status != thread.Completed || len(told) != 1 || told[0].Ended != "test/a-1" {
		t.Errorf("%s, told %+v", rec.Status, told)
	}
	left, err := transcript.Children(h.finisher.Records.Of(id).Transcript(), []thread.ID{"test/a-1", "test/b-1"})
	if err != nil || !slices.Equal(left, []thread.ID{"test/b-1"}) {
		t.Errorf("left to be told: %v, %v", left, err)
	}
}
