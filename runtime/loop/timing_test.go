package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// lineOf is the timeline of a thread.
func (h *house) lineOf(rec thread.Record) timeline.Timeline {
	h.t.Helper()
	b := timeline.New(timeline.FactsOf(rec))
	if err := b.Read(transcript.Events(h.finisher.Records.Of(rec.ThreadID).Transcript())); err != nil {
		h.t.Fatal(err)
	}
	return b.Timeline()
}

func kindsOf(line timeline.Timeline) string {
	var all []string
	for _, s := range line.Spans {
		all = append(all, string(s.Kind))
	}
	return strings.Join(all, " ")
}

// TestTimings holds that what is on record of a call of the model tells connecting,
// waiting for the first word and the whole call apart, which call in a row it is and how
// much was sent, and that the timeline of it comes to what the row says was spent.
func TestTimings(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {times: 1, error: {status: 529, type: overloaded_error, message: busy}}\n  - {times: 1, text: one, tool_calls: [{name: test_echo, input: {word: a}}]}\n  - {text: Done.}\n")
	h.neverWaits()
	rec := h.run(job{})
	requests := events[transcript.CognitionRequest](h, rec.ThreadID, thread.EventCognitionRequest)
	answers := events[transcript.CognitionOut](h, rec.ThreadID, thread.EventCognitionOut)
	if len(requests) != 3 || len(answers) != 2 {
		t.Fatalf("%d requests, %d answers", len(requests), len(answers))
	}
	for i, r := range requests {
		if r.Bytes < 100 || r.SentMS < 0 || (r.Attempt == 2) != (i == 1) || r.InputTokens == 0 {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	for i, a := range answers {
		if a.FirstMS == nil || *a.FirstMS < 0 || a.ModelMS < *a.FirstMS {
			t.Errorf("answer %d took %d ms, and %v until it began", i, a.ModelMS, a.FirstMS)
		}
	}
	line := h.lineOf(rec)
	if got := kindsOf(line); got != "start model backoff model tool model end" {
		t.Errorf("the timeline is %s", got)
	}
	if last := line.Spend[len(line.Spend)-1]; last.Spend != rec.Cost.Spend || last.Tokens != rec.Cost.Tokens() {
		t.Errorf("the spend comes to %+v, the row has %+v", last, rec.Cost)
	}
}

// TestTimingsOfAFailure holds that an answer that is a failure is charged once, whether
// it was asked for again or taken as it is.
func TestTimingsOfAFailure(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {times: 2, text: \"\"}\n  - {text: Done.}\n")
	h.neverWaits()
	rec := h.run(job{})
	line := h.lineOf(rec)
	if got := strings.Count(kindsOf(line), "model"); got != rec.Cost.Turns {
		t.Errorf("%d calls in %d turns: %s", got, rec.Cost.Turns, kindsOf(line))
	}
	before := line.Spend
	if len(before) > 0 && before[len(before)-1].AtMS == line.LengthMS { // what the end adds
		before = before[:len(before)-1]
	}
	if len(before) == 0 || before[len(before)-1].Spend != rec.Cost.Spend || rec.Cost.Spend == 0 {
		t.Errorf("the spend comes to %+v, the row has %+v", line.Spend, rec.Cost)
	}
}

// TestTimingsOfAQueue holds that a thread's transcript alone tells how long it was queued.
func TestTimingsOfAQueue(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {text: Done.}\n")
	id := h.register(job{})
	if _, err := h.store.Enqueue(t.Context(), id, 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	rec := h.end(t.Context(), id)
	if rec.QueuedAt.IsZero() || rec.AdmittedAt.IsZero() {
		t.Fatal("it was in no queue")
	}
	started := events[transcript.ThreadStarted](h, rec.ThreadID, thread.EventThreadStarted)
	if len(started) != 1 || !started[0].QueuedAt.Equal(rec.QueuedAt) || !started[0].AdmittedAt.Equal(rec.AdmittedAt) {
		t.Errorf("it says %+v; the row %v, %v", started, rec.QueuedAt, rec.AdmittedAt)
	}
}
