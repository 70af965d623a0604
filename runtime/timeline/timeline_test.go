package timeline_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(ms int64) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// story is a transcript in the making.
type story struct {
	t      *testing.T
	events []thread.Event
}

func (s *story) add(ms int64, typ thread.EventType, payload any) *story {
	s.t.Helper()
	bytes, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatal(err)
	}
	s.events = append(s.events, thread.Event{Timestamp: at(ms), ThreadID: "a/1", Seq: int64(len(s.events) + 1), Type: typ, Payload: bytes})
	return s
}

func each(events []thread.Event) iter.Seq2[thread.Event, error] {
	return func(yield func(thread.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// read makes the timeline of a thread from what its row and its transcript say.
func read(f timeline.Facts, events iter.Seq2[thread.Event, error]) (timeline.Timeline, error) {
	b := timeline.New(f)
	err := b.Read(events)
	return b.Timeline(), err
}

func (s *story) of(f timeline.Facts) timeline.Timeline {
	s.t.Helper()
	line, err := read(f, each(s.events))
	if err != nil {
		s.t.Fatal(err)
	}
	return line
}

func show(line timeline.Timeline) string {
	var b strings.Builder
	for _, s := range line.Spans {
		end := "…"
		if s.EndMS != nil {
			end = fmt.Sprint(*s.EndMS)
		}
		fmt.Fprintf(&b, "%s %d-%s", s.Kind, s.StartMS, end)
		for _, text := range []string{s.Name, s.CallID, s.Detail, s.Error, string(s.Child)} {
			if text != "" {
				fmt.Fprintf(&b, " %q", text)
			}
		}
		if s.FirstMS != nil {
			fmt.Fprintf(&b, " first=%d", *s.FirstMS)
		}
		if s.Attempt > 0 {
			fmt.Fprintf(&b, " attempt=%d", s.Attempt)
		}
		if s.Count > 0 {
			fmt.Fprintf(&b, " count=%d busy=%d", s.Count, s.BusyMS)
		}
		if s.Spend > 0 {
			fmt.Fprintf(&b, " %s", s.Spend)
		}
		b.WriteString("\n")
	}
	for _, p := range line.Spend {
		fmt.Fprintf(&b, "spend %d %s %d\n", p.AtMS, p.Spend, p.Tokens)
	}
	return b.String()
}

func same(t *testing.T, line timeline.Timeline, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimLeft(want, "\n"), "\t", "")
	if got := show(line); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func ms(n int64) *int64 { return &n }

func usage(in, out int64) llm.Usage {
	return llm.Usage{InputTokens: in, OutputTokens: out, Reported: true}
}

func ended(o thread.Outcome, spend thread.Micros) transcript.Ended {
	return transcript.Ended{Outcome: o, Cost: thread.Cost{Spend: spend}}
}

var row = timeline.Facts{
	ThreadID: "a/1", Kind: thread.KindDirective, Directive: "a", State: thread.Completed,
	Created: noon, Queued: at(10), Admitted: at(500), Ended: at(9000),
}

// TestKinds holds that what a thread does is told apart: the queue, its start, calls of
// the model, back-off, tools that overlap, waiting for a child and for people, its end.
func TestKinds(t *testing.T) {
	s := &story{t: t}
	s.add(560, thread.EventThreadStarted, transcript.ThreadStarted{Directive: "a", Model: "p/m"})
	s.add(570, thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User})
	s.add(620, thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "p/m", Bytes: 900, SentMS: 40, Attempt: 1})
	s.add(700, thread.EventErrorClassified, transcript.ErrorClassified{
		Turn: 1, Attempt: 1, Model: "p/m", Category: "rate_limited", Message: "HTTP 429", Took: transcript.Took{ModelMS: 120},
	})
	s.add(701, thread.EventRetry, transcript.Retry{Turn: 1, Attempt: 2, Model: "p/m", DelayMS: 300, Reason: "rate_limited"})
	s.add(1010, thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "p/m", SentMS: 5, Attempt: 2})
	s.add(1200, thread.EventTokenDelta, transcript.TokenDelta{Turn: 1, Type: llm.TextBlock, Text: "a"})
	s.add(2000, thread.EventCognitionOut, transcript.CognitionOut{
		Turn: 1, Model: "m-1", StopReason: llm.StopToolUse, Usage: usage(100, 10), Spend: 1000, Took: transcript.Took{ModelMS: 995, FirstMS: ms(150)},
	})
	s.add(2001, thread.EventToolCallStart, transcript.ToolCallStart{Turn: 1, CallID: "x", Tool: "shell", Input: transcript.Input(`{"command":"ls"}`)})
	s.add(2002, thread.EventToolCallStart, transcript.ToolCallStart{Turn: 1, CallID: "y", Tool: "rye_execute"})
	s.add(2100, thread.EventChildThreadStarted, transcript.ChildStarted{ThreadID: "b/1", Directive: "b", CallID: "y"})
	s.add(3000, thread.EventToolCallResult, transcript.ToolCallResult{
		Turn: 1, CallID: "x", Tool: "shell", IsError: true, Text: `{"error":"exit 1","code":"tool_failed"}`, DurationMS: 999, Spend: 20,
	})
	s.add(4000, thread.EventToolCallResult, transcript.ToolCallResult{Turn: 1, CallID: "y", Tool: "rye_execute", Ended: []thread.ID{"b/1"}})
	s.add(4001, thread.EventToolCallStart, transcript.ToolCallStart{
		Turn: 1, CallID: "z", Tool: "rye_agent_threads_orchestrator", Input: transcript.Input(`{"operation":"wait_threads"}`),
	})
	s.add(4100, thread.EventToolCallResult, transcript.ToolCallResult{Turn: 1, CallID: "z", Tool: "rye_agent_threads_orchestrator"})
	s.add(4200, thread.EventHookFired, transcript.HookFired{HookID: "h", Event: "after_step", DurationMS: 50})
	s.add(4300, thread.EventQuestionAsked, transcript.QuestionAsked{QuestionID: "q", Kind: "limit", Code: "turns_exceeded", Text: "more?"})
	s.add(6300, thread.EventQuestionAnswered, transcript.QuestionAnswered{QuestionID: "q", Decision: thread.Raise, By: "a person"})
	s.add(6400, thread.EventQuestionAsked, transcript.QuestionAsked{QuestionID: "r", Kind: "handoff", Code: "context_window"})
	s.add(6500, thread.EventQuestionAnswered, transcript.QuestionAnswered{QuestionID: "r", Decision: thread.Decline, By: "a person"})
	s.add(8000, thread.EventThreadCompleted, ended(thread.Outcome{State: thread.Completed}, 1100))
	same(t, s.of(row), `
	start 0-10 "prepare"
	queue 10-500
	start 500-560
	model 580-700 "p/m" "rate_limited" "HTTP 429"
	backoff 701-1005 "rate_limited" "p/m" attempt=2
	model 1005-2000 "p/m" "tool_use" first=155 attempt=2 $0.0010
	tool 2001-3000 "shell" "x" "exit 1" $0.000020
	tool 2002-4000 "rye_execute" "y" "b/1"
	wait 2100-4000 "b" "y" "b/1"
	wait 4001-4100 "rye_agent_threads_orchestrator" "z" "wait_threads"
	hook 4150-4200 "h" "after_step"
	question 4300-6300 "turns_exceeded" "raise by a person"
	approval 6400-6500 "context_window" "decline by a person"
	end 6500-9000 "completed"
	spend 2000 $0.0010 110
	spend 3000 $0.0010 110
	spend 8000 $0.0011 110
	`)
}

// TestWithinOneMillisecond holds that what began and ended in the same millisecond stands
// in the order of the events.
func TestWithinOneMillisecond(t *testing.T) {
	s := &story{t: t}
	s.add(560, thread.EventThreadStarted, transcript.ThreadStarted{Directive: "a", Model: "p/m"})
	s.add(600, thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "p/m", Attempt: 1})
	s.add(600, thread.EventErrorClassified, transcript.ErrorClassified{Turn: 1, Attempt: 1, Model: "p/m", Category: "busy", Message: "HTTP 529"})
	s.add(600, thread.EventRetry, transcript.Retry{Turn: 1, Attempt: 2, Model: "p/m", Reason: "busy"})
	s.add(600, thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "p/m", Attempt: 2})
	s.add(600, thread.EventCognitionOut, transcript.CognitionOut{Turn: 1, Model: "m-1", StopReason: llm.StopEnd, Usage: usage(1, 1), Spend: 1000})
	s.add(600, thread.EventThreadCompleted, ended(thread.Outcome{State: thread.Completed}, 1000))
	row := timeline.Facts{ThreadID: "a/1", Kind: thread.KindDirective, State: thread.Completed, Created: noon, Admitted: at(500), Ended: at(600)}
	var kinds []timeline.Kind
	for _, span := range s.of(row).Spans {
		kinds = append(kinds, span.Kind)
	}
	want := []timeline.Kind{timeline.Start, timeline.Start, timeline.Model, timeline.Backoff, timeline.Model, timeline.End}
	if !slices.Equal(kinds, want) {
		t.Errorf("the order is %v, want %v", kinds, want)
	}
}

func TestUnfinished(t *testing.T) {
	created := timeline.Facts{ThreadID: "a/1", Kind: thread.KindDirective, State: thread.Created, Created: noon}
	queued := created
	queued.Queued = at(10)
	running := queued
	running.State, running.Admitted = thread.Running, at(20)
	died := running
	died.State, died.Problem, died.Ended = thread.Error, "thread process died", at(90_000)
	cancelled := queued
	cancelled.State, cancelled.Ended = thread.Cancelled, at(70)
	tool := running
	tool.Kind, tool.Directive = thread.KindTool, "x/y"
	set := created
	set.Kind, set.Directive = thread.KindSet, "a"

	asks := (&story{t: t}).add(50, thread.EventThreadStarted, transcript.ThreadStarted{}).
		add(100, thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "p/m"})
	calls := (&story{t: t}).add(50, thread.EventThreadStarted, transcript.ThreadStarted{}).
		add(100, thread.EventToolCallStart, transcript.ToolCallStart{CallID: "x", Tool: "shell"}).
		add(101, thread.EventToolCallStart, transcript.ToolCallStart{CallID: "y", Tool: "rye_execute"}).
		add(110, thread.EventChildThreadStarted, transcript.ChildStarted{ThreadID: "b/1", Directive: "b", CallID: "y"})
	dead := &story{t: t, events: append([]thread.Event{}, calls.events...)}
	dead.add(80_000, thread.EventErrorClassified, transcript.ErrorClassified{Category: transcript.TornCategory, Message: "cut off"})
	dead.add(80_001, thread.EventThreadError, ended(thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: thread.CodeDied, Message: "thread process died"}}, 0))
	dead.add(80_002, thread.EventCheckpoint, transcript.Checkpoint{})
	dead.add(900_000, thread.EventThreadResumed, transcript.ThreadResumed{})

	for name, c := range map[string]struct {
		facts timeline.Facts
		told  *story
		want  string
	}{
		"created":   {created, &story{t: t}, "start 0-…\n"},
		"queued":    {queued, &story{t: t}, "queue 10-…\n"},
		"starts":    {running, &story{t: t}, "queue 10-20\nstart 20-…\n"},
		"asks":      {running, asks, "start 0-10 \"prepare\"\nqueue 10-20\nstart 20-50\nmodel 100-… \"p/m\"\n"},
		"calls":     {running, calls, "start 0-10 \"prepare\"\nqueue 10-20\nstart 20-50\ntool 100-… \"shell\" \"x\"\ntool 101-… \"rye_execute\" \"y\" \"b/1\"\nwait 110-… \"b\" \"y\" \"b/1\"\n"},
		"cancelled": {cancelled, &story{t: t}, "queue 10-70\nend 70-70 \"cancelled\"\n"},
		// Nobody knows when it died: not before its last event.
		"died": {died, dead, "start 0-10 \"prepare\"\nqueue 10-20\nstart 20-50\ntool 100-110 \"shell\" \"x\" \"did not end before the thread\"\n" +
			"tool 101-110 \"rye_execute\" \"y\" \"did not end before the thread\" \"b/1\"\nwait 110-110 \"b\" \"y\" \"b/1\"\n" +
			"end 80001-90000 \"error\" \"thread process died\"\n"},
		"died without a word of it": {died, asks, "start 0-10 \"prepare\"\nqueue 10-20\nstart 20-50\nmodel 100-100 \"p/m\" \"did not end before the thread\"\n" +
			"end 90000-90000 \"error\" \"thread process died\"\n"},
		"a tool": {tool, &story{t: t}, "queue 10-20\ntool 20-… \"x/y\"\n"},
		"a set":  {set, &story{t: t}, "wait 0-… \"a\"\n"},
		// It goes on in the transcript while the row has not been read again.
		"not read again": {queued, asks, "start 0-10 \"prepare\"\nqueue 10-50\nmodel 100-… \"p/m\"\n"},
		"no row":         {timeline.Facts{}, asks, "model 50-… \"p/m\"\n"},
	} {
		t.Run(name, func(t *testing.T) { same(t, c.told.of(c.facts), c.want) })
	}
}

// TestOlder holds that transcripts of versions that did not say when a request had left
// are read: a call of the model begins with what came before its answer.
func TestOlder(t *testing.T) {
	s := (&story{t: t}).add(50, thread.EventThreadStarted, transcript.ThreadStarted{}).
		add(60, thread.EventCognitionIn, transcript.CognitionIn{}).
		add(500, thread.EventTokenDelta, transcript.TokenDelta{Turn: 1}).
		add(550, thread.EventTokenDelta, transcript.TokenDelta{Turn: 1}).
		add(700, thread.EventCognitionOut, transcript.CognitionOut{Turn: 1, Model: "m", StopReason: llm.StopToolUse}).
		add(720, thread.EventToolCallResult, transcript.ToolCallResult{Turn: 1, CallID: "x", Tool: "shell", DurationMS: 15}).
		add(900, thread.EventCognitionOut, transcript.CognitionOut{Turn: 2, Model: "m", StopReason: llm.StopEnd})
	same(t, s.of(timeline.Facts{Created: noon, State: thread.Running}), `
	start 0-50
	model 60-700 "m" "tool_use" first=440
	tool 705-720 "shell" "x"
	model 720-900 "m" "end"
	`)
}

func TestClock(t *testing.T) {
	s := (&story{t: t}).add(50, thread.EventThreadStarted, transcript.ThreadStarted{}).
		add(100, thread.EventToolCallStart, transcript.ToolCallStart{CallID: "x", Tool: "shell"}).
		add(-3_600_000, thread.EventToolCallResult, transcript.ToolCallResult{CallID: "x", Tool: "shell"}).
		add(-3_599_000, thread.EventToolCallStart, transcript.ToolCallStart{CallID: "y", Tool: "shell"}).
		add(-3_598_000, thread.EventToolCallResult, transcript.ToolCallResult{CallID: "y", Tool: "shell"})
	s.events = append(s.events, s.events[len(s.events)-1]) // a second time
	line := s.of(timeline.Facts{Created: noon, State: thread.Running})
	same(t, line, `
	start 0-50
	tool 100-100 "shell" "x"
	tool 1100-2100 "shell" "y"
	`)
	if line.Damaged != 1 || line.LengthMS != 2100 {
		t.Errorf("damaged %d, length %d", line.Damaged, line.LengthMS)
	}
}

// TestMany holds that a long thread has a bounded number of spans, which together
// take as long as all did, and cost the same.
func TestMany(t *testing.T) {
	s := &story{t: t}
	const calls = 3 * timeline.MaxSpans
	for i := range int64(calls) {
		s.add(i*10, thread.EventToolCallStart, transcript.ToolCallStart{CallID: fmt.Sprint(i), Tool: "shell"})
		s.add(i*10+4, thread.EventToolCallResult, transcript.ToolCallResult{CallID: fmt.Sprint(i), Tool: "shell", Spend: 1})
	}
	line := s.of(timeline.Facts{Created: noon, State: thread.Running})
	count, busy, spend := 0, int64(0), thread.Micros(0)
	for _, s := range line.Spans {
		if s.Kind == timeline.Tool {
			count, spend = count+max(1, s.Count), spend+s.Spend
			if s.Count == 0 {
				s.BusyMS = *s.EndMS - s.StartMS
			}
			busy += s.BusyMS
		}
	}
	if count != calls || busy != 4*calls || spend != calls {
		t.Errorf("%d calls of %d ms and %s", count, busy, spend)
	}
	if len(line.Spans) > timeline.MaxSpans || len(line.Spend) > timeline.MaxSpans || !line.Truncated {
		t.Errorf("%d spans, %d points, truncated %v", len(line.Spans), len(line.Spend), line.Truncated)
	}
	if last := line.Spend[len(line.Spend)-1]; last.Spend != calls {
		t.Errorf("the last point is %+v", last)
	}
}

// TestPieces holds that a timeline that is brought up to date is the one made at once.
func TestPieces(t *testing.T) {
	s := (&story{t: t}).add(50, thread.EventThreadStarted, transcript.ThreadStarted{}).
		add(100, thread.EventToolCallStart, transcript.ToolCallStart{CallID: "x", Tool: "shell"}).
		add(200, thread.EventToolCallResult, transcript.ToolCallResult{CallID: "x", Tool: "shell"}).
		add(300, thread.EventThreadCompleted, ended(thread.Outcome{State: thread.Completed}, 0))
	early := row
	early.State, early.Ended = thread.Running, time.Time{}
	b := timeline.New(early)
	for i := range s.events {
		if err := b.Read(each(s.events[i : i+1])); err != nil {
			t.Fatal(err)
		}
		b.Timeline()
	}
	b.Know(row)
	if got, want := show(b.Timeline()), show(s.of(row)); got != want {
		t.Errorf("in pieces:\n%sat once:\n%s", got, want)
	}
}

func TestTree(t *testing.T) {
	lane := func(id, parent, previous thread.ID, began int64, spend ...timeline.Point) timeline.Lane {
		over := at(began + 100)
		return timeline.Lane{Parent: parent, Previous: previous, Timeline: timeline.Timeline{
			ThreadID: id, Began: at(began), Ended: &over, LengthMS: 100, Spans: []timeline.Span{}, Spend: spend,
		}}
	}
	tree := timeline.Join([]timeline.Lane{
		lane("root", "elsewhere", "", 0, timeline.Point{AtMS: 10, Spend: 5, Tokens: 1}, timeline.Point{AtMS: 90, Spend: 7, Tokens: 2}),
		lane("late", "root", "", 60), lane("next", "elsewhere", "root", 120), lane("child", "root", "", 20, timeline.Point{AtMS: 30, Spend: 100, Tokens: 9}),
		lane("grandchild", "child", "", 30), lane("stray", "nobody", "", 40), lane("round", "about", "", 50), lane("about", "round", "", 50),
	})
	var got strings.Builder
	for _, l := range tree.Lanes {
		fmt.Fprintf(&got, "%s%s +%d\n", strings.Repeat(" ", l.Depth), l.ThreadID, l.OffsetMS)
	}
	for _, p := range tree.Spend {
		fmt.Fprintf(&got, "%d %d %d\n", p.AtMS, p.Spend, p.Tokens)
	}
	want := "root +0\n child +20\n  grandchild +30\n stray +40\n late +60\nnext +120\n about +50\n  round +50\n" +
		"10 5 1\n50 105 10\n90 107 11\n"
	if got.String() != want || tree.LengthMS != 220 || tree.Ended == nil || !tree.Ended.Equal(at(220)) {
		t.Errorf("length %d, ended %v, got:\n%swant:\n%s", tree.LengthMS, tree.Ended, got.String(), want)
	}
}

// TestOlderFile holds that a transcript of a version that recorded no durations of calls,
// neither queue nor attempts, is read, its damaged and its torn line too.
func TestOlderFile(t *testing.T) {
	line, err := read(timeline.Facts{Created: noon}, transcript.Events(fileSource("testdata/older.jsonl")))
	if err != nil {
		t.Fatal(err)
	}
	same(t, line, `
	start 0-50
	model 80-90 "p/m" "transient" "busy"
	backoff 91-500 "transient" "p/m" attempt=2
	model 500-1000 "p/m" "tool_use" first=200 $0.0005
	tool 1010-1200 "shell" "x"
	hook 1205-1210 "h" "after_step"
	end 1210-1301 "completed"
	spend 1000 $0.0005 100
	`)
	if line.Damaged != 1 || line.Ended == nil {
		t.Errorf("damaged %d, ended %v", line.Damaged, line.Ended)
	}
}

// fileSource is a transcript by its path.
type fileSource string

type openFile struct{ *os.File }

func (f openFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (s fileSource) Open() (records.Reader, error) {
	f, err := os.Open(string(s))
	return openFile{f}, err
}

func (s fileSource) Stamp() (records.Stamp, error) { return records.Stamp{}, nil }

func (s fileSource) Where() string { return string(s) }
