package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestEventsReportsDamage(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	good := `{"timestamp":"2026-03-01T09:30:00.250Z","thread_id":"a-1","seq":1,"event_type":"retry","payload":{}}`
	writeFile(t, path, []byte(good+"\n{\"seq\":0}\n\n"+good+"\ntorn"))
	var got []string
	for e, err := range Events(records.File(path)) {
		got = append(got, fmt.Sprintf("%s %v", e.Type, err))
	}
	want := []string{
		"retry <nil>",
		" transcript line 2: seq is missing",
		" transcript line 3: unexpected end of JSON input",
		"retry <nil>",
		" the last line of the transcript is torn (4 bytes)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

func TestLineTooLong(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	long := strings.Repeat("x", maxLineBytes)
	lines := newLineReader(strings.NewReader("a\n" + long + "\nb\n" + long))
	line, err := lines.next()
	if string(line) != "a" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := lines.next(); !errors.Is(err, errLineTooLong) {
		t.Fatalf("got %v", err)
	}
	if line, err := lines.next(); string(line) != "b" || err != nil || lines.line != 3 {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := lines.next(); !isTorn(err) {
		t.Fatalf("got %v", err)
	}
}

// Pages put together are the file, and none is larger than asked.
func TestTailPages(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	writeThread(t, path, nil, 4)
	whole := string(readFile(t, path))
	longest := 0
	for line := range strings.Lines(whole) {
		longest = max(longest, len(line))
	}
	writeFile(t, path, []byte(whole+"torn"))
	rapid.Check(t, func(rt *rapid.T) {
		o := TailOptions{MaxBytes: rapid.IntRange(longest/2, 2*len(whole)).Draw(rt, "max")}
		var all strings.Builder
		for {
			page, err := Tail(records.File(path), o)
			must(rt, err)
			if size := tool.SizeInJSON(page.Content); size > o.MaxBytes {
				rt.Fatalf("page of %d bytes, at most %d asked", size, o.MaxBytes)
			}
			all.WriteString(page.Content)
			if o.Cursor = page.Next; page.AtEnd {
				break
			}
		}
		if all.String() != whole {
			rt.Fatalf("pages do not make the file")
		}
	})
}

func TestTailFollows(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	page, err := Tail(records.File(path), TailOptions{Last: 5})
	must(t, err)
	if page.Content != "" || !page.AtEnd {
		t.Fatalf("empty transcript: %+v", page)
	}
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "new"}))
	must(t, w.Close())
	page, err = Tail(records.File(path), TailOptions{Cursor: page.Next})
	must(t, err)
	if page.Content != string(readFile(t, path)) || !page.AtEnd {
		t.Errorf("got %+v", page)
	}
}

func TestTailLast(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	writeThread(t, path, nil, 3)
	lines := strings.SplitAfter(string(readFile(t, path)), "\n")
	lines = lines[:len(lines)-1]
	for _, n := range []int{1, 3, len(lines), len(lines) + 5} {
		page, err := Tail(records.File(path), TailOptions{Last: n})
		must(t, err)
		if want := strings.Join(lines[max(0, len(lines)-n):], ""); page.Content != want || !page.AtEnd {
			t.Errorf("last %d: got %q", n, page.Content)
		}
	}
	last := lines[len(lines)-1]
	page, err := Tail(records.File(path), TailOptions{Last: 3, MaxBytes: tool.SizeInJSON(last) + 10})
	must(t, err)
	if page.Content != last {
		t.Errorf("the newest that fit: got %q", page.Content)
	}
	page, err = Tail(records.File(path), TailOptions{Last: 2, Text: true})
	must(t, err)
	if !strings.Contains(page.Content, "## Turn 3") || !strings.Contains(page.Content, "## Completed") || strings.Contains(page.Content, "Turn 2") {
		t.Errorf("as text: got %q", page.Content)
	}
}

// An event that no page can hold is spread over several, to the byte, in both
// forms and from the end as well.
func TestTailSpreadsWhatNoPageHolds(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	long := strings.Repeat("ä\"日\n\x01", 3000)
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: long}))
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "next"}))
	must(t, w.Close())
	for _, text := range []bool{false, true} {
		want := string(readFile(t, path))
		if text {
			want = "## System\n\n" + long + "\n\n## System\n\nnext\n\n"
		}
		if got := readPages(t, path, TailOptions{MaxBytes: 1000, Text: text}); got != want {
			t.Errorf("text %t: %d bytes of %d", text, len(got), len(want))
		}
		page, err := Tail(records.File(path), TailOptions{MaxBytes: 1000, Last: 2, Text: text})
		must(t, err)
		if !strings.Contains(page.Content, "next") || strings.Contains(page.Content, "日") || !page.AtEnd {
			t.Errorf("the last two: %+v", page)
		}
		if got := readPages(t, path, TailOptions{MaxBytes: 1000, Text: text, Cursor: page.Earlier}); got != want {
			t.Errorf("earlier events, text %t: %d bytes of %d", text, len(got), len(want))
		}
	}
	page, err := Tail(records.File(path), TailOptions{MaxBytes: 1000})
	must(t, err)
	if _, err := Tail(records.File(path), TailOptions{Cursor: page.Next, Text: true}); !errors.Is(err, ErrBadCursor) {
		t.Errorf("a cursor within an event, in the other form: %v", err)
	}
}

// A newest event that no page can hold is read on from where the page ended.
func TestTailLastIsLong(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "first"}))
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: strings.Repeat("x", 5000)}))
	must(t, w.Close())
	page, err := Tail(records.File(path), TailOptions{MaxBytes: 1000, Last: 2, Text: true})
	must(t, err)
	if page.AtEnd || page.Earlier != "0" {
		t.Errorf("got %+v", page)
	}
	rest := readPages(t, path, TailOptions{MaxBytes: 1000, Text: true, Cursor: page.Next})
	if got := strings.Count(page.Content+rest, "x"); got != 5000 {
		t.Errorf("%d of 5000 bytes", got)
	}
}

// readPages reads from a cursor to the end.
func readPages(t *testing.T, path string, o TailOptions) string {
	t.Helper()
	var all strings.Builder
	for range 10_000 {
		page, err := Tail(records.File(path), o)
		must(t, err)
		if size := tool.SizeInJSON(page.Content); size > o.MaxBytes || page.Content == "" {
			t.Fatalf("a page of %d bytes", size)
		}
		all.WriteString(page.Content)
		if o.Cursor = page.Next; page.AtEnd {
			return all.String()
		}
	}
	t.Fatal("the pages do not end")
	return ""
}

// The final answer stands in the text once, wherever a page begins.
func TestTextHasTheAnswerOnce(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	answer := "The answer is\n\nforty-two."
	must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: 1, Blocks: Blocks{{Type: llm.TextBlock, Text: answer}}}))
	must(t, w.Checkpoint(1))
	_, err := w.Finish(thread.Outcome{State: thread.Completed, Result: answer}, thread.Cost{Turns: 1})
	must(t, err)
	must(t, w.Close())
	var rendered strings.Builder
	must(t, Render(records.File(path), &rendered))
	for name, text := range map[string]string{
		"rendered": rendered.String(), "pages": readPages(t, path, TailOptions{MaxBytes: 60, Text: true}),
		"last": readPages(t, path, TailOptions{MaxBytes: 1000, Last: 3, Text: true}),
	} {
		if strings.Count(text, "forty-two.") != 1 || !strings.Contains(text, "The result is the answer above.") {
			t.Errorf("%s: %s", name, text)
		}
	}
	page, err := Tail(records.File(path), TailOptions{Last: 1, Text: true})
	must(t, err)
	if strings.Contains(page.Content, "forty-two") || !strings.Contains(page.Content, "## Completed") {
		t.Errorf("the end alone: %s", page.Content)
	}
}

func TestTailRefusesCursors(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	writeThread(t, path, nil, 2)
	for _, cursor := range []string{"-1", "1", "x", "99999999", "0x0", strings.Repeat("9", 30)} {
		if _, err := Tail(records.File(path), TailOptions{Cursor: cursor}); !errors.Is(err, ErrBadCursor) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	check := func(want Newest) {
		t.Helper()
		got, err := Last(records.File(path))
		must(t, err)
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	check(Newest{})
	writeTurn(t, w, 1)
	must(t, w.Checkpoint(1))
	check(Newest{thread.EventToolCallResult, "rye/bash", "Let me look."})
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "Now "}))
	must(t, w.Delta(2, llm.Delta{Type: llm.ReasoningBlock, Text: "hm"}))
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: strings.Repeat("é", 5000)}))
	check(Newest{thread.EventTokenDelta, "", "…" + strings.Repeat("é", lastWordsBytes/2)})
	must(t, w.Append(thread.EventRetry, Retry{Turn: 2}))
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "end"}))
	must(t, w.Close())
	if last, err := Last(records.File(path)); err != nil || !strings.HasSuffix(last.Text, "end") {
		t.Errorf("%q, %v", last, err)
	}
}

func TestLastOutcomeMissing(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	if _, _, err := LastOutcome(records.File(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	w := open(t, path, nil)
	writeTurn(t, w, 1)
	must(t, w.Close())
	outcome, cost, err := LastOutcome(records.File(path))
	if outcome != nil || cost != nil || err != nil {
		t.Errorf("running thread: %v, %v, %v", outcome, cost, err)
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	must(t, w.Append(thread.EventThreadStarted, ThreadStarted{Directive: "test/demo", Model: "scripted/demo"}))
	must(t, w.Append(thread.EventSystemPrompt, SystemPrompt{Text: "Be brief."}))
	must(t, w.Append(thread.EventCognitionIn, CognitionIn{Role: llm.User, Blocks: Blocks{{Type: llm.TextBlock, Text: "What is here?"}}}))
	writeTurn(t, w, 1)
	must(t, w.Checkpoint(1))
	must(t, w.Append(thread.EventToolCallResult, ToolCallResult{Tool: "rye/fetch", Text: "```\nfence\n```", IsError: true}))
	must(t, w.Append(thread.EventErrorClassified, ErrorClassified{Category: "rate_limited", Message: "slow\ndown"}))
	must(t, w.Append(thread.EventRetry, Retry{Attempt: 2, DelayMS: 500, Reason: "rate_limited"}))
	must(t, w.Append(thread.EventChildThreadStarted, ChildStarted{ThreadID: "c-1", Directive: "c"}))
	must(t, w.Append(thread.EventLimitExceeded, LimitExceeded{Code: "turns_exceeded", Value: "2", Max: "2"}))
	must(t, w.Append(thread.EventThreadContinued, ThreadContinued{PreviousThreadID: "p-1", Via: thread.ViaHandoff, Messages: 4}))
	must(t, w.Append(thread.EventHookFired, HookFired{HookID: "h", Event: "limit", Result: "fail"}))
	must(t, w.Append(thread.EventHookFired, HookFired{HookID: "g", Event: "limit", Error: "no such tool"}))
	must(t, w.Append(thread.EventCognitionIn, map[string]any{"role": 7}))
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "Half a sen"}))
	_, err := w.Finish(thread.Outcome{
		State: thread.Error, Result: "Nothing.", Outputs: map[string]any{"n": 1},
		Error: &thread.Problem{Code: "limit", Message: "Limit exceeded"},
	}, thread.Cost{Turns: 1, InputTokens: 10, Spend: 1200})
	must(t, err)
	must(t, w.Close())
	w = open(t, path, nil)
	must(t, w.Append(thread.EventThreadResumed, ThreadResumed{NewThreadID: "r-1", Directive: "test/demo", MessagePreview: "go on", ReconstructedTurns: 2}))
	must(t, w.Delta(3, llm.Delta{Type: llm.TextBlock, Text: "Still writing"}))
	must(t, w.Close())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("{}\n{\"torn")
	must(t, err)
	must(t, f.Close())

	var got bytes.Buffer
	must(t, Render(records.File(path), &got))
	golden := filepath.Join("testdata", "render.md")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		writeFile(t, golden, got.Bytes())
	}
	if want := readFile(t, golden); !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got:\n%s", got.String())
	}
	if err := Render(records.File(path), brokenWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("to a broken writer: %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestBackwardIsForwardReversed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"\n", "a", "bb", strings.Repeat("c", 33<<10)})).Draw(rt, "text"), "")
		r := strings.NewReader(text)
		end, err := lineStart(r, r.Size())
		must(rt, err)
		var got []string
		for p, err := range backward(r, end) {
			must(rt, err)
			got = append([]string{string(p.line)}, got...)
		}
		var want []string
		scanner := bufio.NewScanner(strings.NewReader(text[:end]))
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			want = append(want, scanner.Text())
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			rt.Fatalf("got %d lines, want %d", len(got), len(want))
		}
	})
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("{\"seq\":1,\"event_type\":\"x\",\"payload\":{}}\n"))
	f.Add([]byte("a\n\nb"))
	f.Add([]byte{0, '\n', 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := newLineReader(bytes.NewReader(data))
		var back []byte
		for {
			line, err := lines.next()
			if torn, ok := errors.AsType[*TornError](err); ok {
				back = append(back, data[int64(len(data))-torn.Bytes:]...)
				break
			}
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			back = append(append(back, line...), '\n')
			if int64(len(back)) != lines.offset {
				t.Fatalf("offset is %d after %d bytes", lines.offset, len(back))
			}
			if e, err := decodeLine(line); err == nil {
				_ = eventText(e, func() string { return "" })
			}
		}
		if !bytes.Equal(back, data) {
			t.Fatalf("lines do not make the input")
		}
	})
}

// FuzzRead gives a whole file of any content to every reader, and then to a
// writer, which must be able to end the thread.
func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed")
	writeThread(f, path, newTestKey(1), 2)
	f.Add(readFile(f, path))
	f.Add([]byte("{\"seq\":9223372036854775807,\"event_type\":\"checkpoint\",\"payload\":{}}\n{"))
	f.Add([]byte("\n\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := newPath(t)
		writeFile(t, path, data)
		_, _ = messages(path)
		_, err := Last(records.File(path))
		must(t, err)
		must(t, Render(records.File(path), io.Discard))
		for _, o := range []TailOptions{{}, {Text: true, MaxBytes: 100}, {Last: 3}} {
			_, err := Tail(records.File(path), o)
			must(t, err)
		}
		for _, o := range []WindowOptions{{}, {Before: -1, MaxBytes: 10}, {After: 3}, {Before: 2, Deltas: true}} {
			_, err := ReadWindow(records.File(path), o)
			must(t, err)
		}
		_, _, err = EventAt(records.File(path), 2)
		must(t, err)
		_, _ = Verify(records.File(path), newTestKey(1), nil)
		before, _, err := LastOutcome(records.File(path))
		must(t, err)

		w := open(t, path, newTestKey(1))
		_, err = w.Finish(thread.Outcome{State: thread.Error}, thread.Cost{})
		must(t, err)
		must(t, w.Close())
		after, _, err := LastOutcome(records.File(path))
		must(t, err)
		if after == nil || (before != nil && after.State != before.State) {
			t.Fatalf("outcome was %+v and is %+v", before, after)
		}
	})
}
