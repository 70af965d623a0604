package loop

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// TestClockJumps: a clock that is set an hour forward or back while a thread
// runs does not end it, shorten its waits or make anything take less than no
// time. Only what is stamped follows the clock.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_act}]}\n" +
				"  - {times: 1, error: {status: 529, type: overloaded_error, message: busy}}\n  - {text: done}\n")
			var off atomic.Int64
			h.tools.act = func() error {
				off.Store(int64(jump))
				return nil
			}
			// Without the reading of the monotonic clock, as after a suspend.
			now := func() time.Time { return time.Now().Round(0).Add(time.Duration(off.Load())) }
			h.finisher.Now = now
			id := h.register(job{limits: func(l *thread.Limits) { l.DurationSeconds = 1800 }})
			d := h.deps(id)
			d.Now = now
			rec, err := Run(t.Context(), d)
			if err != nil || rec.Status != thread.Completed {
				t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome, err)
			}
			h.checkAgreement(t.Context(), rec)
			for _, result := range h.results(id) {
				if result.DurationMS < 0 || result.DurationMS > jump.Abs().Milliseconds()/2 {
					t.Errorf("a call took %d ms", result.DurationMS)
				}
			}
			for _, retry := range events[transcript.Retry](h, id, thread.EventRetry) {
				if retry.DelayMS < 0 || retry.DelayMS > jump.Abs().Milliseconds()/2 {
					t.Errorf("a wait of %d ms", retry.DelayMS)
				}
			}
			h.checkStamps(id, jump)
		})
	}
}

// checkStamps: events are in the order of seq, and their stamps jump once.
func (h *house) checkStamps(id thread.ID, jump time.Duration) {
	h.t.Helper()
	var last thread.Event
	jumps := 0
	for e, err := range transcript.Events(records.File(h.folder(id).Transcript())) {
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Seq != last.Seq+1 {
			h.t.Errorf("event %d after %d", e.Seq, last.Seq)
		}
		if last.Seq > 0 && e.Timestamp.Sub(last.Timestamp).Abs() > jump.Abs()/2 {
			jumps++
		}
		last = e
	}
	if jumps != 1 {
		h.t.Errorf("the stamps jump %d times", jumps)
	}
}
