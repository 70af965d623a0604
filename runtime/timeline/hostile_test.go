package timeline_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
)

// payloads are fields that events have, with values that they have and should not have.
var payloads = []string{
	`{}`, `{"turn":1,"model":"p/m","attempt":1,"category":"x","message":"m"}`, `{"turn":-5,"call_id":"a","tool":"t","ended":["b"],"duration_ms":-9}`,
	`{"turn":1,"call_id":"a","tool":"t","duration_ms":9223372036854775807,"spend":1e9}`, `{"turn":1,"call_id":"a","tool":"t"}`,
	`{"hook_id":"h","event":"e","duration_ms":500}`, `{"thread_id":"b","call_id":"a","directive":"d"}`, `{"thread_id":"b","hook_id":"h"}`, `{"thread_id":"b"}`,
	`{"turn":2,"sent_ms":9223372036854775807,"bytes":-1,"first_ms":-7,"model_ms":-1}`, `{"question_id":"q","kind":"handoff"}`,
	`{"question_id":"q","decision":"stop"}`, `{"outcome":{"status":"error","error":{"code":"process_died","message":"died"}},"cost":{"turns":1,"spend":2}}`,
	`{"turn":1,"usage":{"input_tokens":9223372036854775807,"output_tokens":9223372036854775807},"spend":900000000}`, `{"spend":-1}`, `{"turn":"x"}`,
	`{"call_id":"a","input":{"operation":"wait_threads"}}`, `{"queued_at":"0001-01-01T00:00:00Z","admitted_at":"9999-12-31T23:59:59Z"}`,
	`{"model_ms":9223372036854775807,"first_ms":9223372036854775807,"turn":1}`, `{"category":"transcript"}`,
}

var kinds = []thread.EventType{
	thread.EventThreadStarted, thread.EventThreadResumed, thread.EventThreadHandoff, thread.EventThreadCompleted, thread.EventThreadError,
	thread.EventCognitionIn, thread.EventCognitionRequest, thread.EventCognitionOut, thread.EventMessage, thread.EventTokenDelta,
	thread.EventToolCallStart, thread.EventToolCallResult, thread.EventErrorClassified, thread.EventRetry, thread.EventQuestionAsked,
	thread.EventQuestionAnswered, thread.EventChildThreadStarted, thread.EventHookFired, thread.EventCheckpoint, "unheard_of",
}

func anyTime(t *rapid.T, what string) time.Time {
	switch rapid.IntRange(0, 9).Draw(t, what) {
	case 0:
		return time.Time{}
	case 1:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	case 2:
		return time.Date(1, 1, 1, 0, 0, 0, 1e6, time.UTC)
	}
	return at(rapid.Int64Range(-10_000, 10_000).Draw(t, what+" in ms"))
}

// TestSensible holds that whatever a transcript and a row say, spans are in order and none
// ends before it begins, spend never falls, and adding in pieces gives the same.
func TestSensible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := timeline.Facts{
			State: rapid.SampledFrom(thread.States()).Draw(t, "state"), Kind: rapid.SampledFrom([]thread.Kind{thread.KindDirective, thread.KindTool, thread.KindSet}).Draw(t, "kind"),
			Created: anyTime(t, "created"), Queued: anyTime(t, "queued"), Admitted: anyTime(t, "admitted"), Ended: anyTime(t, "ended"),
		}
		var events []thread.Event
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			events = append(events, thread.Event{
				Timestamp: anyTime(t, "at"), Seq: rapid.Int64Range(1, 80).Draw(t, "seq"), Type: rapid.SampledFrom(kinds).Draw(t, "type"),
				Payload: json.RawMessage(rapid.SampledFrom(payloads).Draw(t, "payload")),
			})
		}
		if rapid.Bool().Draw(t, "numbered") {
			for i := range events {
				events[i].Seq = int64(i + 1)
			}
		}
		b := timeline.New(f)
		b.Limit(rapid.SampledFrom([]int{16, 32, timeline.MaxSpans}).Draw(t, "most"))
		for _, e := range events {
			b.Add(e)
			if rapid.Bool().Draw(t, "look") {
				sensible(t, b.Timeline())
			}
		}
		line := b.Timeline()
		sensible(t, line)
		if !f.Ended.IsZero() && slices.ContainsFunc(line.Spans, func(s timeline.Span) bool { return s.EndMS == nil }) {
			t.Fatalf("something goes on in a thread that has ended: %s", show(line))
		}
		again, err := json.Marshal(b.Timeline())
		if err != nil {
			t.Fatal(err)
		}
		if once, _ := json.Marshal(line); !bytes.Equal(once, again) {
			t.Fatalf("two looks differ:\n%s\n%s", once, again)
		}
	})
}

type failer interface{ Fatalf(string, ...any) }

func sensible(t failer, line timeline.Timeline) {
	for i, s := range line.Spans {
		switch {
		case s.StartMS < 0 || s.EndMS != nil && *s.EndMS < s.StartMS:
			t.Fatalf("span %d ends before it begins: %s", i, show(line))
		case i > 0 && s.StartMS < line.Spans[i-1].StartMS:
			t.Fatalf("span %d is out of order: %s", i, show(line))
		case s.EndMS != nil && *s.EndMS > line.LengthMS, s.StartMS > line.LengthMS:
			t.Fatalf("span %d ends behind the length of %d: %s", i, line.LengthMS, show(line))
		case s.FirstMS != nil && (*s.FirstMS < 0 || s.EndMS != nil && *s.FirstMS > *s.EndMS-s.StartMS):
			t.Fatalf("the answer of span %d begins outside it: %s", i, show(line))
		case s.Turn < 0, s.Spend < 0, s.Bytes < 0, s.SentMS < 0, s.BusyMS < 0:
			t.Fatalf("span %d has negative numbers: %+v", i, s)
		}
	}
	for i, p := range line.Spend {
		if p.AtMS < 0 || i > 0 && (p.AtMS < line.Spend[i-1].AtMS || p.Spend < line.Spend[i-1].Spend || p.Tokens < line.Spend[i-1].Tokens) {
			t.Fatalf("point %d falls: %+v", i, line.Spend)
		}
	}
	if line.Spans == nil || line.Spend == nil {
		t.Fatalf("a list is null")
	}
}

// FuzzTimeline holds the same for the bytes of a transcript.
func FuzzTimeline(f *testing.F) {
	for i, p := range payloads {
		f.Add([]byte(`{"timestamp":"2026-03-01T12:00:00.000Z","thread_id":"a/1","seq":1,"event_type":"`+string(kinds[i])+`","payload":`+p+"}\n"), int64(i))
	}
	f.Fuzz(func(t *testing.T, file []byte, ended int64) {
		facts := timeline.Facts{Created: noon}
		if ended > 0 {
			facts.Ended = at(ended % 1_000_000)
		}
		b := timeline.New(facts)
		b.Limit(64)
		for line := range bytes.Lines(file) {
			var e thread.Event
			if json.Unmarshal(line, &e) != nil {
				b.Damaged()
				continue
			}
			b.Add(e)
		}
		sensible(t, b.Timeline())
	})
}

// TestAttackTimeline: a transcript begins thirty thousand tool calls that never end, with names of a megabyte, and hooks that took longer than there is time. Its timeline has a bounded number of short spans in their order.
func TestAttackTimeline(t *testing.T) {
	t.Parallel()
	b := timeline.New(timeline.Facts{Created: noon})
	long := strings.Repeat("\u202e\x1b[31m", 1<<17)
	seq := int64(0)
	add := func(typ thread.EventType, payload map[string]any) {
		seq++
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		b.Add(thread.Event{Timestamp: noon, Seq: seq, Type: typ, Payload: text})
	}
	for i := range 30_000 {
		name := "t"
		if i < 20 {
			name = long
		}
		add(thread.EventToolCallStart, map[string]any{"call_id": strconv.Itoa(i) + name, "tool": name})
		add(thread.EventHookFired, map[string]any{"hook_id": name, "duration_ms": int64(math.MaxInt64), "spend": 1e9})
	}
	line := b.Timeline()
	sensible(t, line)
	shown, err := json.Marshal(line)
	if err != nil || len(line.Spans) > timeline.MaxSpans+1000 || len(line.Spend) > timeline.MaxSpans || len(shown) > 4<<20 || !line.Truncated {
		t.Errorf("%d spans, %d points, %d bytes, truncated %v, %v", len(line.Spans), len(line.Spend), len(shown), line.Truncated, err)
	}
}
