package loop

import (
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestCancelOnRecordInterrupts: a cancel that is put on record by somebody who
// cannot signal the thread's process stops it in the middle of a call.
func TestCancelOnRecordInterrupts(t *testing.T) {
	t.Parallel()
	for when, script := range map[string]string{
		"during a tool": "turns:\n  - {tool_calls: [{name: test_wait, input: {}}]}\n",
		"during a call": "turns:\n  - {text: half an answer, hang: true, cut_after: 3, usage: {input_tokens: 100, output_tokens: 10}}\n",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script(script)
			id := h.register(job{})
			r := newRun(h.deps(id))
			r.lookEvery = time.Millisecond
			go func() {
				h.awaitTrouble(t.Context(), id)
				if _, err := h.store.RequestCancel(t.Context(), id, time.Now()); err != nil {
					t.Error(err)
				}
				close(h.tools.release)
			}()
			rec, err := r.toEnd(t.Context())
			if err != nil || rec.Status != thread.Cancelled || rec.Outcome.Error.Code != "cancelled" {
				t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome, err)
			}
			if n := len(h.server.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
