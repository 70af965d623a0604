package loop

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestRaiseDuringCall: while a thread's call of the model is on its way, a child
// cannot be given the money that the call may cost.
func TestRaiseDuringCall(t *testing.T) {
	t.Parallel()
	const each = 1000 // of the child, before
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}]}\n  - text: done\n")
	id := h.register(job{})
	var child thread.ID
	var during error
	h.change = func(r *run) {
		r.Crashpoints = func(s thread.Crashpoint) {
			switch {
			case s == CrashCall:
				rec, _, err := store.Register(t.Context(), r.Store, store.NewThread{
					Kind: thread.KindDirective, Directive: "test/task", Model: "fake/small", ParentID: id, MaxSpawns: 5, Now: time.Now(),
				}, func(thread.ID) error { return nil })
				child = rec.ThreadID
				_, claimErr := storetest.As(r.Store).Apply(t.Context(), store.Claimed(child, thread.Process{PID: os.Getpid(), Host: "here"}, time.Now()))
				if err := errors.Join(err, claimErr, r.Store.Reserve(t.Context(), child, id, each, time.Now())); err != nil {
					t.Error(err)
				}
			case s == CrashAsk && child != "":
				b, err := r.Store.Budget(t.Context(), id)
				if err != nil {
					t.Error(err)
				}
				during = storetest.As(r.Store).Raise(t.Context(), child, b.MaxSpend-b.Actual, time.Now()) // all but what is spent
			}
		}
	}
	rec := h.end(t.Context(), id)
	if rec.Status != thread.Completed {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome)
	}
	if short := new(store.InsufficientError); !errors.As(during, &short) {
		t.Errorf("raised during the call: %v", during)
	}
	if b, err := h.store.Budget(t.Context(), id); err != nil || b.Pledged != 0 || b.Actual+b.Reserved > b.MaxSpend {
		t.Errorf("budget %+v, %v", b, err)
	}
}
