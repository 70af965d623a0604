package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// writeLines writes a transcript of events, with lines between them that are none.
func writeLines(t testingT, path string, events []any, damaged map[int]string) {
	t.Helper()
	var b strings.Builder
	for i, payload := range events {
		b.WriteString(damaged[i])
		kind := thread.EventHookFired
		switch payload.(type) {
		case TokenDelta:
			kind = thread.EventTokenDelta
		case CognitionOut:
			kind = thread.EventCognitionOut
		}
		raw, err := encode(payload)
		must(t, err)
		line, err := encodeLine(stamp(fixedNow()), testID, int64(i+1), kind, raw)
		must(t, err)
		b.Write(line)
	}
	b.WriteString(`{"seq":99999,"torn`)
	must(t, os.WriteFile(path, []byte(b.String()), 0o600))
}

// seqs are those of the events of a window.
func seqs(w Window) (list []int64) {
	for _, e := range w.Events {
		list = append(list, e.Seq)
	}
	return list
}

// Pages forwards and pages backwards are the same events, each once, whatever lies between
// them and however long a line is.
func TestWindowsAreAllOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 25).Draw(t, "events")
		var events []any
		var all []int64
		damaged := map[int]string{}
		for i := range n {
			size := rapid.SampledFrom([]int{0, 300, 5000, 70_000}).Draw(t, "size")
			events = append(events, HookFired{HookID: "h", Result: strings.Repeat("x", size)})
			all = append(all, int64(i+1))
			if rapid.IntRange(0, 9).Draw(t, "damage") == 0 {
				damaged[i] = rapid.SampledFrom([]string{"\n", "no event\n", strings.Repeat("y", 100_000) + "\n", "{\"seq\":5,\"payload\":1}\n"}).Draw(t, "line")
			}
		}
		path := filepath.Join(dir, "t.jsonl")
		writeLines(t, path, events, damaged)
		most := rapid.SampledFrom([]int{1, 1000, 100_000, 0}).Draw(t, "most")
		read := func(o WindowOptions) Window {
			o.MaxBytes = most
			w, err := ReadWindow(records.File(path), o)
			must(t, err)
			return w
		}
		var forward []int64
		for at := int64(0); ; {
			w := read(WindowOptions{After: at})
			forward = append(forward, seqs(w)...)
			if w.AtEnd {
				break
			}
			if w.Next <= at {
				t.Fatalf("no progress at %d", at)
			}
			at = w.Next
		}
		if !slices.Equal(forward, all) {
			t.Fatalf("forwards %v, want %v", forward, all)
		}
		var back []int64
		for at := int64(-1); ; {
			w := read(WindowOptions{Before: at})
			back = append(seqs(w), back...)
			if w.AtStart {
				break
			}
			at = w.First
		}
		if !slices.Equal(back, all) {
			t.Fatalf("backwards %v, want %v", back, all)
		}
		if n == 0 {
			return
		}
		k := rapid.IntRange(0, n-1).Draw(t, "after")
		if w := read(WindowOptions{After: int64(k)}); len(w.Events) == 0 || w.Events[0].Seq != int64(k+1) || w.AtStart != (k == 0) && len(damaged) == 0 {
			t.Fatalf("after %d: %v, at start %t", k, seqs(w), w.AtStart)
		}
		e, found, err := EventAt(records.File(path), int64(k+1))
		must(t, err)
		if !found || e.Seq != int64(k+1) {
			t.Fatalf("event %d: %v %t", k+1, e.Seq, found)
		}
		if _, found, err := EventAt(records.File(path), int64(n+1)); found || err != nil {
			t.Fatalf("an event that there is not: %v", err)
		}
	})
}

// Streamed pieces are one event, and none when the answer is there as a whole; a stream
// keeps them.
func TestWindowOfWhatIsStreamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	var events []any
	text := func(turn, n int) {
		for i := range n {
			events = append(events, TokenDelta{Turn: turn, Type: llm.TextBlock, Text: fmt.Sprintf("%d ", i)})
		}
	}
	text(1, 3) // 1-3
	events = append(events, TokenDelta{Turn: 1, Type: llm.ToolUseBlock, Text: "read", Bytes: 2}, TokenDelta{Turn: 1, Type: llm.ToolUseBlock, Text: "read", Bytes: 3})
	events = append(events, CognitionOut{Turn: 1, Blocks: Blocks{{Type: llm.TextBlock, Text: "0 1 2 "}}}) // 6
	text(2, 4)                                                                                            // 7-10
	writeLines(t, path, events, nil)
	for _, tt := range []struct {
		name string
		o    WindowOptions
		want string
	}{
		{"forwards", WindowOptions{}, "6 10:0 1 2 3 "},
		{"backwards", WindowOptions{Before: -1}, "6 10:0 1 2 3 "},
		{"from within", WindowOptions{After: 8}, "10:2 3 "},
		{"backwards from within", WindowOptions{Before: 6}, "3:0 1 2  5:read5"},
		{"stream", WindowOptions{Deltas: true}, "3:0 1 2  5:read5 6 10:0 1 2 3 "},
		{"found", WindowOptions{Find: must1(NewPattern("2 3", false))}, "10:0 1 2 3 "},
		{"found backwards", WindowOptions{Before: -1, Find: must1(NewPattern("1 2", false))}, "6 10:0 1 2 3 "},
	} {
		w, err := ReadWindow(records.File(path), tt.o)
		must(t, err)
		var got []string
		for _, e := range w.Events {
			one := fmt.Sprint(e.Seq)
			if d, ok := deltaOf(e); ok {
				one += ":" + d.Text
				if d.Bytes > 0 {
					one += fmt.Sprint(d.Bytes)
				}
			}
			got = append(got, one)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, strings.Join(got, " "), tt.want)
		}
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// deltaOf is the streamed piece that an event is.
func deltaOf(e thread.Event) (TokenDelta, bool) {
	if e.Type != thread.EventTokenDelta {
		return TokenDelta{}, false
	}
	d, err := Decode[TokenDelta](e)
	return d, err == nil
}

// A page of a long transcript reads little of it.
func TestWindowReadsLittle(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	var events []any
	for range 5000 {
		events = append(events, HookFired{HookID: "h", Result: strings.Repeat("x", 2000)})
	}
	writeLines(t, path, events, nil)
	for _, o := range []WindowOptions{{After: 2500, MaxBytes: 10_000}, {Before: 2500, MaxBytes: 10_000}, {Before: -1, MaxBytes: 10_000}} {
		from := &counted{Source: records.File(path)}
		w, err := ReadWindow(from, o)
		must(t, err)
		if len(w.Events) < 3 || from.read > 1<<20 {
			t.Errorf("%+v: %d events of %d bytes read", o, len(w.Events), from.read)
		}
	}
}

// counted is a transcript that says how much of it was read.
type counted struct {
	records.Source
	read int
}

func (c *counted) Open() (records.Reader, error) {
	r, err := c.Source.Open()
	return countedReader{r, c}, err
}

type countedReader struct {
	records.Reader
	of *counted
}

func (r countedReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	r.of.read += n
	return n, err
}
