package transcript

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// answered records an answer as a thread does, streamed and whole.
func answered(t testingT, w *Writer, turn int, stop llm.StopReason, blocks ...llm.Block) {
	t.Helper()
	for _, b := range blocks {
		must(t, w.Delta(turn, llm.Delta{Type: b.Type, Text: b.Text}))
	}
	must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: turn, StopReason: stop, Blocks: blocks}))
}

// TestAnswerStandsOnce: the transcript of a long answer is little longer than the
// answer, beside the beginning of it that is written as it is streamed.
func TestAnswerStandsOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const constant = maxStreamed + 64<<10
	for _, size := range []int{1 << 10, 100 << 10, 4 << 20} {
		path, key := newPath(t), newTestKey(1)
		w := open(t, path, key)
		text := strings.TrimSpace(strings.Repeat("words of the answer ", size/20))
		answered(t, w, 1, llm.StopEnd, llm.Block{Type: llm.TextBlock, Text: text})
		outcome := thread.Outcome{State: thread.Completed, Result: text}
		head, err := w.Finish(outcome, thread.Cost{Turns: 1})
		must(t, err)
		must(t, w.Close())
		info, err := os.Stat(path)
		must(t, err)
		if most := int64(size)*6/5 + constant; info.Size() > most {
			t.Errorf("an answer of %d bytes makes a transcript of %d, want at most %d", size, info.Size(), most)
		}
		if _, err := Verify(records.File(path), key, &head); err != nil {
			t.Error(err)
		}
		wantOutcome(t, path, outcome)
		wantSaidOnce(t, path, text)
		again := open(t, path, key)
		if got := again.Decided().Outcome; !reflect.DeepEqual(got, outcome) {
			t.Errorf("decided %s of %d bytes", got.State, len(got.Result))
		}
		repeated, err := again.Finish(thread.Outcome{State: thread.Error}, thread.Cost{})
		must(t, err)
		must(t, again.Close())
		if repeated != head {
			t.Errorf("head %+v, then %+v", head, repeated)
		}
	}
}

func wantOutcome(t testingT, path string, want thread.Outcome) {
	t.Helper()
	got, _, err := LastOutcome(records.File(path))
	must(t, err)
	if got == nil || !reflect.DeepEqual(*got, want) {
		t.Fatalf("outcome %+.300v, want %+.300v", got, want)
	}
}

// wantSaidOnce: people and models read an answer once, and that it is the result.
func wantSaidOnce(t *testing.T, path, text string) {
	t.Helper()
	var rendered bytes.Buffer
	must(t, Render(records.File(path), &rendered))
	page, err := Tail(records.File(path), TailOptions{Text: true, MaxBytes: 8 << 20})
	must(t, err)
	for how, shown := range map[string]string{"rendering": rendered.String(), "text": page.Content} {
		if n := strings.Count(shown, text); n != 1 || !strings.Contains(shown, resultAbove) {
			t.Errorf("%s: the answer stands there %d times", how, n)
		}
	}
	pattern, err := NewPattern(text[:100], false)
	must(t, err)
	hits, err := Search(t.Context(), records.File(path), pattern, 10)
	must(t, err)
	if len(text) > maxRepeated && len(hits) != 1 {
		t.Errorf("found %d times", len(hits))
	}
}

// TestResultIsReadBack: whatever answers a thread gives, in parts too, and whatever its
// result is, the transcript says that result.
func TestResultIsReadBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		file, err := os.CreateTemp(dir, "*.jsonl")
		must(t, err)
		path := file.Name()
		must(t, file.Close())
		w := open(t, path, nil)
		text := rapid.SampledFrom([]string{"", "short", " ", "\n", strings.Repeat("long\n", 1000), "  " + strings.Repeat("é\x00<&", 1500) + "  "})
		partial, whole := "", ""
		for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
			var blocks []llm.Block
			for range rapid.IntRange(0, 3).Draw(t, "blocks") {
				kind := rapid.SampledFrom([]llm.BlockType{llm.TextBlock, llm.ReasoningBlock}).Draw(t, "kind")
				blocks = append(blocks, llm.Block{Type: kind, Text: text.Draw(t, "text")})
			}
			stop := rapid.SampledFrom([]llm.StopReason{llm.StopEnd, llm.StopMaxTokens}).Draw(t, "stop")
			answered(t, w, turn+1, stop, blocks...)
			whole = strings.TrimSpace(partial + llm.TextOf(blocks))
			if partial += llm.TextOf(blocks); stop == llm.StopEnd {
				partial = ""
			}
		}
		outcome := thread.Outcome{State: thread.Completed, Result: whole}
		if rapid.Bool().Draw(t, "another result") {
			outcome.Result = text.Draw(t, "result")
		}
		_, err = w.Finish(outcome, thread.Cost{})
		must(t, err)
		must(t, w.Close())
		wantOutcome(t, path, outcome)
		if stored := string(readFile(t, path)); len(whole) > maxRepeated && outcome.Result == whole && !strings.Contains(stored, `"result_of":[`) {
			t.Fatal("a long result that is the last answer stands twice")
		}
	})
}

// TestResultOfLostAnswer: the answer that an end names is gone. The thread has ended
// all the same, and says what is missing.
func TestResultOfLostAnswer(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	text := strings.Repeat("x", 2*maxRepeated)
	must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: 1, Blocks: Blocks{{Type: llm.TextBlock, Text: text}}}))
	_, err := w.Finish(thread.Outcome{State: thread.Completed, Result: text}, thread.Cost{})
	must(t, err)
	must(t, w.Close())
	writeFile(t, path, bytes.Replace(readFile(t, path), []byte(`"event_type":"cognition_out"`), []byte(`"event_type":"cognition_oot"`), 1))
	wantOutcome(t, path, thread.Outcome{
		State: thread.Completed, Warnings: []string{"the result is not whole: answer 1 of the transcript cannot be read"},
	})
}

// TestResultOfOlderTranscripts: before long results were named they stood in the end,
// and are read from there.
func TestResultOfOlderTranscripts(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	text := strings.Repeat("y", 2*maxRepeated)
	writeFile(t, path, []byte(`{"timestamp":"2026-03-01T09:30:00.250Z","thread_id":"test/demo-1772357400","seq":1,"event_type":"thread_completed",`+
		`"payload":{"outcome":{"status":"completed","result":"`+text+`"},"cost":{}}}`+"\n"))
	wantOutcome(t, path, thread.Outcome{State: thread.Completed, Result: text})
}
