package loop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestCancelOnRecordInterrupts: a cancel that is put on record by somebody who
// cannot signal the thread's process stops it in the middle of a call.
func TestCancelOnRecordInterrupts(t *testing.T) {
	t.Parallel()
	inTrouble(t, func(t *testing.T, h *house, _ string) {
		id := h.register(job{})
		r := newRun(h.deps(id))
		r.lookEvery = time.Millisecond
		go func() {
			h.awaitTrouble(t.Context(), id)
			if _, err := h.store.RequestCancel(t.Context(), id, "", time.Now()); err != nil {
				t.Error(err)
			}
			close(h.tools.release)
		}()
		rec, err := r.toEnd(t.Context())
		if err != nil || rec.Status != thread.Cancelled || rec.Outcome.Error.Code != "cancelled" {
			t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome, err)
		}
	})
}

// recorded is a registry in which a cancel is on record.
type recorded struct {
	store.Store
	rec thread.Record
}

func (s recorded) Get(context.Context, thread.ID) (thread.Record, error) { return s.rec, nil }

// nameless is a run of a row without one.
type nameless struct{ store.Runner }

func (nameless) Of() (thread.ID, thread.Run) { return "a-1", "" }

// TestSignalTellsMore: a thread that reads of its cancel on record is told by the signal that
// comes after, where one comes; without one it stops all the same.
func TestSignalTellsMore(t *testing.T) {
	t.Parallel()
	killed := errors.New("it was killed")
	for name, c := range map[string]struct {
		signal time.Duration // after the look; 0: there is none
		want   error
	}{"a signal comes": {signalWithin - time.Millisecond, killed}, "none comes": {0, thread.ErrCancelled}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, signal := context.WithCancelCause(t.Context())
				defer signal(nil)
				r := newRun(Deps{Runner: nameless{}, Store: recorded{rec: thread.Record{Status: thread.Running, CancelRequestedAt: time.Now()}}})
				heeding, done := r.heedRecord(ctx)
				defer done()
				if c.signal > 0 {
					time.Sleep(r.lookEvery + c.signal)
					signal(killed)
				}
				<-heeding.Done()
				if got := context.Cause(heeding); !errors.Is(got, c.want) {
					t.Errorf("it stops by %v, want %v", got, c.want)
				}
			})
		})
	}
}

const (
	duringTool = "during a tool"
	duringCall = "during a call"
)

// inTrouble runs a test with a thread that hangs in its first turn, in a tool and in a call
// of the model, and that must end without another request.
func inTrouble(t *testing.T, test func(t *testing.T, h *house, when string)) {
	for when, turn := range map[string]string{
		duringTool: "{tool_calls: [{name: test_wait, input: {}}], usage: {input_tokens: 100, output_tokens: 10}}",
		duringCall: "{text: half an answer, hang: true, cut_after: 3, usage: {input_tokens: 100, output_tokens: 10}}",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script("turns:\n  - " + turn + "\n")
			test(t, h, when)
			if n := len(h.server.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
