package loop

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// TestNoMessageIsLost posts an instruction at each step of a thread, and while it looks at
// what it has changed. One that is accepted is read, and at last one is refused; so is one
// that comes when it ends, however it ends.
func TestNoMessageIsLost(t *testing.T) {
	t.Parallel()
	const outputs = `<output name="word" type="string" required="true">one</output>`
	for name, c := range map[string]struct {
		script, outputs string
		ends            thread.State
	}{
		"says that it is done": {script: "turns:\n  - text: done\n", ends: thread.Completed},
		"returns": {
			script:  "turns:\n  - tool_calls: [{name: rye_directive_return, input: {word: a}}]\n",
			outputs: outputs, ends: thread.Completed,
		},
		"fails": {
			script:  "turns:\n  - tool_calls: [{name: rye_directive_return, input: {status: error, error_detail: it is not there}}]\n",
			outputs: outputs, ends: thread.Error,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := 0
			for on := 1; ; on++ {
				at, was := postAt(t, c.script, c.outputs, c.ends, on)
				if at == "" {
					break
				}
				if was {
					refused++
				} else if refused > 0 {
					t.Errorf("a message at step %d, %s, was accepted, and one before was not", on, at)
				}
			}
			if refused == 0 {
				t.Error("no message was refused")
			}
		})
	}
}

// postAt posts a message at a step of a thread that says the same in each turn. At is empty
// where it does not come to so many.
func postAt(t *testing.T, script, outputs string, ends thread.State, on int) (at thread.Crashpoint, refused bool) {
	t.Helper()
	h := newHouse(t)
	_, turn, _ := strings.Cut(script, "turns:\n")
	h.script("turns:\n" + strings.Repeat(turn, 3))
	id := h.register(job{outputs: outputs})
	d, met := h.deps(id), 0
	d.Crashpoints = func(p thread.Crashpoint) {
		if met++; met != on {
			return
		}
		at = p
		m := thread.Message{ID: uuid.NewString(), Kind: thread.Steer, Reader: id, From: thread.Sender{Kind: thread.ByPerson}, Text: "step " + strconv.Itoa(on), At: time.Now()}
		_, err := h.store.Post(context.WithoutCancel(t.Context()), m, store.NoteBound{})
		if _, is := errors.AsType[*store.UnreadableError](err); err != nil && !is {
			t.Error(err)
		}
		refused = err != nil
	}
	rec, err := Run(t.Context(), d)
	if err != nil || rec.Status != ends {
		t.Fatalf("a message at %s: %s %+v, %v", at, rec.Status, rec.Outcome, err)
	}
	if at == "" {
		return at, refused
	}
	if want := map[bool]int{true: 0, false: 1}[refused]; rec.Unread != 0 || len(rec.Outcome.Warnings) > 0 || len(h.read(id)) != want {
		t.Errorf("a message at %s, refused %v: read %q, %d unread, warnings %q", at, refused, h.read(id), rec.Unread, rec.Outcome.Warnings)
	}
	if ret := events[transcript.DirectiveReturn](h, id, thread.EventDirectiveReturn); outputs != "" && len(ret) != 1 {
		t.Errorf("a message at %s: returned %d times", at, len(ret))
	}
	return at, refused
}

// TestEndsWithMessages: a thread that has no turn left for what it was told says so, and
// nobody can tell it more.
func TestEndsWithMessages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - text: done\n")
	id := h.register(job{limits: func(l *thread.Limits) { l.Turns = 1 }})
	d, late := h.deps(id), error(nil)
	d.Crashpoints = func(p thread.Crashpoint) {
		switch p {
		case CrashAnswer:
			h.post(id, "in French")
		case CrashDecided:
			_, late = h.store.Post(context.WithoutCancel(t.Context()), thread.Message{ID: uuid.NewString(), Kind: thread.Steer, Reader: id, Text: "more", At: time.Now()}, store.NoteBound{})
		}
	}
	rec, err := Run(t.Context(), d)
	if err != nil || !slices.ContainsFunc(rec.Outcome.Warnings, func(w string) bool { return strings.Contains(w, "1 message to this thread was not read") }) {
		t.Errorf("%+v, %v", rec.Outcome, err)
	}
	if ending, is := errors.AsType[*store.UnreadableError](late); !is || !ending.Ending {
		t.Errorf("told at its end: %v", late)
	}
	h.checkMessages(id, "in French")
}
