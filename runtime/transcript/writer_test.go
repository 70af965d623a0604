package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

func TestLineFormat(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "a <b> & \"c\"\nd\u2028"}))
	must(t, w.Close())
	want := `{"timestamp":"2026-03-01T09:30:00.250Z","thread_id":"test/demo-1772357400","seq":1,` +
		`"event_type":"system_prompt","payload":{"text":"a <b> & \"c\"\nd\u2028"}}` + "\n"
	if got := string(readFile(t, path)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
}

// record is what a round trip must preserve.
type record struct {
	kind    thread.EventType
	payload string
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		f, err := os.CreateTemp(dir, "")
		must(rt, err)
		must(rt, f.Close())
		path := f.Name()

		w := open(rt, path, newTestKey(1))
		var want []record
		var streamed strings.Builder
		steps := rapid.IntRange(1, 25).Draw(rt, "steps")
		for i := range steps {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				d := llm.Delta{Type: llm.TextBlock, Text: rapid.String().Draw(rt, "delta")}
				must(rt, w.Delta(i, d))
				streamed.WriteString(d.Text)
			case 1:
				must(rt, w.Checkpoint(i))
			case 2:
				must(rt, w.Close())
				w = open(rt, path, newTestKey(1))
			default:
				p := ToolCallResult{Turn: i, CallID: rapid.String().Draw(rt, "id"), Text: rapid.String().Draw(rt, "text"), IsError: i%2 == 0}
				must(rt, w.Append(thread.EventToolCallResult, p))
				body, err := json.Marshal(p)
				must(rt, err)
				want = append(want, record{thread.EventToolCallResult, string(body)})
			}
		}
		must(rt, w.Close())

		var got []record
		var pieces strings.Builder
		for i, e := range allEvents(rt, path) {
			if e.Seq != int64(i+1) || e.ThreadID != testID || !e.Timestamp.Equal(fixedNow()) {
				rt.Fatalf("line %d is %+v", i+1, e)
			}
			switch e.Type {
			case thread.EventTokenDelta:
				d, err := Decode[TokenDelta](e)
				must(rt, err)
				pieces.WriteString(d.Text)
			case thread.EventToolCallResult:
				p, err := Decode[ToolCallResult](e)
				must(rt, err)
				body, err := json.Marshal(p)
				must(rt, err)
				got = append(got, record{e.Type, string(body)})
			default: // checkpoints
			}
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("got  %v\nwant %v", got, want)
		}
		if pieces.String() != streamed.String() {
			rt.Fatalf("streamed %q, read %q", streamed.String(), pieces.String())
		}
		if _, err := Verify(records.File(path), newTestKey(1), nil); err != nil {
			rt.Fatalf("%v", err)
		}
	})
}

func TestDeltaIsWrittenWhenDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		w := open(t, path, nil)
		for _, text := range []string{"one ", "two ", "three"} {
			must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: text}))
		}
		<-time.After(batchDelay - time.Millisecond)
		synctest.Wait()
		if n := len(readFile(t, path)); n != 0 {
			t.Fatalf("%d bytes before the batch was due", n)
		}
		<-time.After(2 * time.Millisecond)
		synctest.Wait()
		events := allEvents(t, path)
		if len(events) != 1 {
			t.Fatalf("%d events, want the pieces in one", len(events))
		}
		d, err := Decode[TokenDelta](events[0])
		must(t, err)
		if want := (TokenDelta{Turn: 1, Type: llm.TextBlock, Text: "one two three"}); d != want {
			t.Errorf("got %+v", d)
		}
		must(t, w.Close())
	})
}

func TestDeltaOrder(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	must(t, w.Delta(1, llm.Delta{Type: llm.ReasoningBlock, Text: "hm"}))
	must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "a"}))
	must(t, w.Delta(1, llm.Delta{Type: llm.ToolUseBlock, Text: "rye_bash"}))
	must(t, w.Delta(1, llm.Delta{Type: llm.ToolUseBlock, Text: "rye_read"}))
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "b"}))
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: strings.Repeat("x", batchBytes)}))
	large := len(allEvents(t, path)) // a full batch does not wait for Close
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "y"}))
	must(t, w.Close())

	var got []string
	for _, e := range allEvents(t, path) {
		d, err := Decode[TokenDelta](e)
		must(t, err)
		got = append(got, fmt.Sprintf("%s %s %.8s", e.Type, d.Type, d.Text))
	}
	want := []string{
		"token_delta reasoning hm", "token_delta text a", "token_delta tool_use rye_bash", "token_delta tool_use rye_read",
		"system_prompt  b", "token_delta text xxxxxxxx", "token_delta text y",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if large != 6 {
		t.Errorf("%d events after a full batch, want 6", large)
	}
}

// TestAnswerEndsWhatIsPending: the name of a tool, and what the provider has counted, need
// no line of their own when the whole answer is there before it is due.
func TestAnswerEndsWhatIsPending(t *testing.T) {
	t.Parallel()
	counted := llm.Usage{InputTokens: 5, Reported: true}
	for name, test := range map[string]struct {
		deltas []llm.Delta
		turn   int // of the answer
		want   []string
	}{
		"a call": {[]llm.Delta{{Usage: &counted}, {Type: llm.ToolUseBlock, Text: "rye_read"}, {Type: llm.ToolUseBlock, Hidden: 7}}, 1, []string{"cognition_out  "}},
		"text":   {[]llm.Delta{{Usage: &counted}, {Type: llm.TextBlock, Text: "a"}}, 1, []string{"token_delta text a 5", "cognition_out  "}},
		"calls": {
			[]llm.Delta{{Type: llm.ToolUseBlock, Text: "rye_read"}, {Type: llm.ToolUseBlock, Text: "rye_write"}}, 1,
			[]string{"token_delta tool_use rye_read", "cognition_out  "},
		},
		"another turn": {[]llm.Delta{{Type: llm.ToolUseBlock, Text: "rye_read"}}, 2, []string{"token_delta tool_use rye_read", "cognition_out  "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			w := open(t, path, nil)
			for _, d := range test.deltas {
				must(t, w.Delta(1, d))
			}
			must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: test.turn}))
			must(t, w.Close())
			var got []string
			for _, e := range allEvents(t, path) {
				d, err := Decode[TokenDelta](e)
				must(t, err)
				line := fmt.Sprintf("%s %s %s", e.Type, d.Type, d.Text)
				if e.Type == thread.EventTokenDelta && d.Usage != nil {
					line += fmt.Sprintf(" %d", d.Usage.InputTokens)
				}
				got = append(got, line)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestFailedWriteSticks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, newPath(t), nil)
		must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "lost"}))
		must(t, w.f.Close()) // as a disk that is gone
		<-time.After(2 * batchDelay)
		synctest.Wait()
		first := w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "more"})
		if !errors.Is(first, fs.ErrClosed) {
			t.Fatalf("Delta after a failed write in the background: %v", first)
		}
		if err := w.Append(thread.EventSystemPrompt, SystemPrompt{}); err == nil || err.Error() != first.Error() {
			t.Errorf("Append: %v", err)
		}
		if err := w.Checkpoint(1); err == nil {
			t.Error("Checkpoint succeeded")
		}
		if _, err := w.Finish(thread.Outcome{State: thread.Completed}, thread.Cost{}); err == nil {
			t.Error("Finish succeeded")
		}
	})
}

// TestFinishAfterFailedWrite: what a failed write left of its line is cut off,
// and the end is recorded all the same.
func TestFinishAfterFailedWrite(t *testing.T) {
	t.Parallel()
	path, key := newPath(t), newTestKey(1)
	w := open(t, path, key)
	writeTurn(t, w, 1)
	must(t, w.Checkpoint(1))
	_, err := w.f.Write([]byte(`{"timestamp":"half a li`)) // as a disk does that is full
	must(t, err)
	w.err = syscall.ENOSPC
	if err := w.Checkpoint(2); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Checkpoint: %v", err)
	}
	head, err := w.Finish(thread.Outcome{State: thread.Error}, thread.Cost{Turns: 2})
	must(t, err)
	must(t, w.Close())
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Error(err)
	}
	events := allEvents(t, path)
	if e := events[len(events)-2]; e.Type != thread.EventThreadError || e.Seq != int64(len(events)-1) {
		t.Errorf("the last but one event is %+v", e)
	}
}

// TestBeginCheckpoint: what is written while a checkpoint goes to disk is not part of it,
// and every later look at the disk waits for it.
func TestBeginCheckpoint(t *testing.T) {
	t.Parallel()
	path, key := newPath(t), newTestKey(1)
	w := open(t, path, key)
	for turn := range 3 {
		writeTurn(t, w, turn+1)
		must(t, w.BeginCheckpoint(turn+1))
	}
	writeTurn(t, w, 4)
	must(t, w.Synced())
	must(t, w.Synced())
	must(t, w.BeginCheckpoint(4))
	head, err := w.Finish(thread.Outcome{State: thread.Completed}, thread.Cost{Turns: 4})
	must(t, err)
	must(t, w.Close())
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Error(err)
	}
	if head.Checkpoints != 5 {
		t.Errorf("%d checkpoints", head.Checkpoints)
	}
}

// TestFailedSync: what the disk says of a checkpoint is told to the caller that waits for it, or to
// whatever comes next, and once: the system says it once.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*Writer) error{
		"waits":      (*Writer).Synced,
		"checkpoint": func(w *Writer) error { return w.Checkpoint(2) },
		"begins":     func(w *Writer) error { return w.BeginCheckpoint(2) },
		"closes":     (*Writer).Close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, newPath(t), nil)
			writeTurn(t, w, 1)
			w.syncing = make(chan error, 1)
			w.syncing <- syscall.EIO
			if err := next(w); !errors.Is(err, syscall.EIO) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNothingAfterTheEnd: a tool that was left behind cannot write below the
// signature that ends the transcript.
func TestNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	path, key := newPath(t), newTestKey(1)
	w := open(t, path, key)
	head, err := w.Finish(thread.Outcome{State: thread.Completed}, thread.Cost{})
	must(t, err)
	if err := w.Append(thread.EventToolCallResult, ToolCallResult{}); !errors.Is(err, ErrEnded) {
		t.Errorf("Append: %v", err)
	}
	if err := w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "x"}); !errors.Is(err, ErrEnded) {
		t.Errorf("Delta: %v", err)
	}
	must(t, w.Close())
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Error(err)
	}
}

func TestInPlace(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(path string) error{
		"":        func(string) error { return nil },
		"deleted": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".elsewhere") },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
		"a folder":           func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link to itself":   func(path string) error { return errors.Join(os.Rename(path, path+"1"), os.Symlink(path+"1", path)) },
		"the folder deleted": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		path := newPath(t)
		w := open(t, path, nil)
		must(t, move(path))
		if err := w.InPlace(); errors.Is(err, records.ErrLost) != (name != "") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, w.Close())
	}
}

func TestAppendRefuses(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	for name, call := range map[string]func() error{
		"checkpoint":  func() error { return w.Append(thread.EventCheckpoint, Checkpoint{}) },
		"terminal":    func() error { return w.Append(thread.EventThreadError, Ended{}) },
		"no object":   func() error { return w.Append(thread.EventSystemPrompt, "text") },
		"nil":         func() error { return w.Append(thread.EventSystemPrompt, nil) },
		"not to JSON": func() error { return w.Append(thread.EventSystemPrompt, map[string]any{"f": func() {}}) },
		"too long": func() error {
			return w.Append(thread.EventSystemPrompt, SystemPrompt{Text: strings.Repeat("\x01", maxLineBytes/6+1)})
		},
		"finish as running": func() error {
			_, err := w.Finish(thread.Outcome{State: thread.Running}, thread.Cost{})
			return err
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "a refusal breaks nothing"}))
	must(t, w.Close())
	must(t, w.Close())
	if err := w.Append(thread.EventSystemPrompt, SystemPrompt{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if events := allEvents(t, path); len(events) != 1 {
		t.Errorf("%d events, want 1", len(events))
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, newTestKey(1))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				must(t, w.Delta(g, llm.Delta{Type: llm.TextBlock, Text: "x"}))
				must(t, w.Append(thread.EventToolCallResult, ToolCallResult{Turn: g, DurationMS: int64(i)}))
			}
		})
	}
	wg.Wait()
	must(t, w.Checkpoint(1))
	must(t, w.Close())
	report, err := Verify(records.File(path), newTestKey(1), nil)
	must(t, err)
	if report.SignedBytes != report.Bytes {
		t.Errorf("%+v", report)
	}
}

func TestFinishCanBeRepeated(t *testing.T) {
	t.Parallel()
	key := newTestKey(1)
	done := thread.Outcome{State: thread.Completed, Result: "One file."}
	path := newPath(t)
	_, head := writeThread(t, path, key, 2)
	whole := readFile(t, path)
	lastLine := strings.LastIndexByte(strings.TrimSuffix(string(whole), "\n"), '\n') + 1

	for name, kept := range map[string]int{"after the end": len(whole), "before the checkpoint": lastLine, "within the checkpoint": lastLine + 20} {
		writeFile(t, path, whole[:kept])
		w := open(t, path, key)
		again, err := w.Finish(thread.Outcome{State: thread.Error}, thread.Cost{Turns: 2})
		must(t, err)
		twice, err := w.Finish(thread.Outcome{State: thread.Error}, thread.Cost{Turns: 2})
		must(t, err)
		must(t, w.Close())
		if again != twice {
			t.Errorf("%s: heads differ: %+v, %+v", name, again, twice)
		}
		if kept != lastLine+20 && again != head {
			t.Errorf("%s: head is %+v, want %+v", name, again, head)
		}
		if _, err := Verify(records.File(path), key, &again); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		outcome, cost, err := LastOutcome(records.File(path))
		must(t, err)
		if outcome == nil || !reflect.DeepEqual(*outcome, done) || cost.Spend != 1200 {
			t.Errorf("%s: outcome is %+v, %+v", name, outcome, cost)
		}
	}
}

func TestOpenAtEveryTruncation(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	key := newTestKey(1)
	path := newPath(t)
	_, head := writeThread(t, path, key, 2)
	whole := readFile(t, path)
	for n := range whole {
		writeFile(t, path, whole[:n])
		report, err := Verify(records.File(path), key, nil)
		if err != nil {
			t.Fatalf("cut at %d: a crash is no damage: %v", n, err)
		}
		if report.Bytes != int64(n) || report.UnsignedBytes() < 0 {
			t.Fatalf("cut at %d: %+v", n, report)
		}
		wantDamage(t, path, key, &head, Truncated, 0, fmt.Sprintf("cut at %d", n))
		if _, err := messages(path); err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}

		complete := strings.Count(string(whole[:n]), "\n")
		w := open(t, path, key)
		must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "next"}))
		want := complete + 1
		if n%64 == 0 { // a checkpoint waits for the disk
			must(t, w.Checkpoint(2))
			want++
		}
		must(t, w.Close())
		if report.TornBytes > 0 {
			want++ // the event that reports it
		}
		if events := allEvents(t, path); len(events) != want {
			t.Fatalf("cut at %d: %d events, want %d", n, len(events), want)
		}
		if _, err := Verify(records.File(path), key, nil); err != nil {
			t.Fatalf("cut at %d and continued: %v", n, err)
		}
	}
}

func TestOpenDamaged(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	writeFile(t, path, []byte("not an event\n{\"seq\":5,\"event_type\":\"x\",\"payload\":{}}\n\x00\x00\n"))
	w := open(t, path, nil)
	head, err := w.Finish(thread.Outcome{State: thread.Error}, thread.Cost{})
	must(t, err)
	must(t, w.Close())
	outcome, _, err := LastOutcome(records.File(path))
	must(t, err)
	if outcome == nil || outcome.State != thread.Error {
		t.Errorf("outcome is %+v", outcome)
	}
	wantDamage(t, path, nil, &head, Altered, 1, "damaged before it was continued")
	if _, err := Open(records.File(t.TempDir()), testID, Options{}); err == nil {
		t.Error("a folder was opened")
	}
}

// BenchmarkRatioLength compares recording an event and signing a checkpoint at
// 10 MB of transcript with the same at 0.1 MB. The checkpoint is on disk when it
// returns, which is most of its time; the files are written in turn, so that
// what else the disk does hits both.
func BenchmarkRatioLength(b *testing.B) {
	b.Run("append and checkpoint at 10 MB of transcript/at 0.1 MB/checkpoint=fdatasync", func(b *testing.B) {
		const rounds = 200
		short, long := grown(b, 100<<10), grown(b, 10<<20)
		var atShort, atLong []time.Duration
		for b.Loop() {
			for range rounds {
				atShort = append(atShort, recordTurn(b, short))
				atLong = append(atLong, recordTurn(b, long))
			}
		}
		slices.Sort(atShort)
		slices.Sort(atLong)
		// Of the times, the lower quartile is what other load disturbs least.
		baseline, measured := atShort[len(atShort)/4], atLong[len(atLong)/4]
		b.ReportMetric(float64(measured)/float64(baseline), "x-baseline")
		b.ReportMetric(1.2, "x-goal")
		b.ReportMetric(float64(measured.Microseconds()), "µs")
		b.ReportMetric(float64(baseline.Microseconds()), "µs-baseline")
	})
}

// grown is a transcript of so many bytes, on disk.
func grown(b *testing.B, size int64) *Writer {
	w := open(b, newPath(b), newTestKey(1))
	b.Cleanup(func() { must(b, w.Close()) })
	for w.offset < size {
		must(b, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: strings.Repeat("x", 1000)}))
	}
	must(b, w.Checkpoint(1))
	return w
}

// recordTurn is the time that an event and a checkpoint take.
func recordTurn(b *testing.B, w *Writer) time.Duration {
	began := time.Now()
	must(b, w.Append(thread.EventToolCallResult, ToolCallResult{Turn: 1, Text: "some text of a result"}))
	must(b, w.Checkpoint(1))
	return time.Since(began)
}
