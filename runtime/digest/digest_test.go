package digest

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestBounds: whatever a thread has left, its digest keeps to its bound, is text, and
// every section ends.
func TestBounds(t *testing.T) {
	t.Parallel()
	word := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("aä`\n \"<")), 0, 30_000, -1))
	rapid.Check(t, func(t *rapid.T) {
		d := Digest{
			Thread: "t-1", Directive: rapid.StringN(1, 300, 512).Draw(t, "directive"), Record: "agent/threads/t/t-1", Ended: "now",
			Inputs: rapid.MapOfN(rapid.String(), anyOf(word), 0, 3).Draw(t, "inputs"), Result: word.Draw(t, "result"),
			Outputs: rapid.MapOfN(rapid.String(), anyOf(word), 0, 40).Draw(t, "outputs"),
			Files:   rapid.SliceOfN(rapid.String(), 0, 100).Draw(t, "files"), Unread: rapid.Bool().Draw(t, "unread"),
		}
		for range rapid.IntRange(0, 20).Draw(t, "notes") {
			d.Noted = append(d.Noted, handoff.Noted{Kind: word.Draw(t, "kind"), Title: word.Draw(t, "title"), Text: word.Draw(t, "text")})
			d.Said = append(d.Said, handoff.Said{From: thread.Sender{Kind: thread.ByPerson}, Text: word.Draw(t, "said")})
			d.Items = append(d.Items, Entry{Position: 1, Inputs: d.Inputs, Result: word.Draw(t, "item")})
		}
		text := d.Text()
		if len(text) > MaxBytes {
			t.Fatalf("%d bytes", len(text))
		}
		if !utf8.ValidString(text) {
			t.Fatal("no text")
		}
		if again := d.Text(); again != text {
			t.Fatal("another time it is another text")
		}
	})
}

func anyOf(g *rapid.Generator[string]) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any { return g.Draw(t, "value") })
}

// TestOneLongOutput takes nothing from the others.
func TestOneLongOutput(t *testing.T) {
	t.Parallel()
	d := Digest{Thread: "t-1", Directive: "t", Outputs: map[string]any{"log": strings.Repeat("line of a log\n", 10_000)}}
	for i := range 20 {
		d.Outputs[fmt.Sprint("decision", i)] = fmt.Sprintf("chose %d because of the shards", i)
	}
	d.Noted = []handoff.Noted{{Kind: "constraint", Title: "RLS", Text: strings.Repeat("word ", 5_000)}}
	d.Files = []string{"a.sql", strings.Repeat("long/", 1000), "c.sql"}
	text := d.Text()
	for i := range 20 {
		if !strings.Contains(text, fmt.Sprintf("chose %d because of the shards", i)) {
			t.Errorf("output %d is lost:\n%s", i, text)
		}
	}
	for _, part := range []string{"line of a log", "shortened from", "constraint · RLS:\n  word", "a.sql", "(and 2 more)"} {
		if !strings.Contains(text, part) {
			t.Errorf("it lacks %q:\n%s", part, text)
		}
	}
	if len(text) < MaxBytes*3/4 {
		t.Errorf("%d bytes, there was room for %d", len(text), MaxBytes)
	}
}

// TestManyOutputs: those without room are counted.
func TestManyOutputs(t *testing.T) {
	t.Parallel()
	d := Digest{Thread: "t-1", Directive: "t", Outputs: map[string]any{}}
	for i := range 5_000 {
		d.Outputs[fmt.Sprintf("n%04d", i)] = i
	}
	if text := d.Text(); !strings.Contains(text, "n0000: 0\n") || !strings.Contains(text, " more; the record has them)") || len(text) > MaxBytes {
		t.Errorf("%d bytes\n%s", len(text), text)
	}
}
