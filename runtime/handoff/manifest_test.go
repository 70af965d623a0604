package handoff

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func sample() Manifest {
	return Manifest{
		Thread: "team/build-1", Via: thread.ViaHandoff, Position: 3, Directive: "team/build", Task: " Build the <thing>.\n",
		Inputs: map[string]any{"name": "a & b", "key": "[secret]", "count": 2},
		Children: []Child{
			{ThreadID: "w-1", Directive: "w", Status: thread.Completed, Result: "wrote\n  it"},
			{ThreadID: "w-2", Directive: "w", Status: thread.Running},
			{ThreadID: "w-3", Directive: "w", Status: thread.Error, Result: "no money"},
		},
		Artifacts: []Artifact{{Ref: "0123456789abcdef", Bytes: 99, Tool: "rye_bash"}, {Ref: "fedcba9876543210", Bytes: 7}},
		Files:     []string{"a.go", "b/c.go\n## Not a heading"},
	}
}

const sampleText = "# Where the work stands\n\nYou continue the work of thread `team/build-1`, whose context window was nearly full. " +
	"You are thread 3 of its chain, with the same directive, `team/build`. " +
	"The runtime has put this record together; what it lists is done and need not be done again.\n" + `
## The task
<task>
Build the <thing>.
</task>

## Inputs
- count: 2
- key: "[secret]"
- name: "a & b"

## Child threads at work, which go on; wait for them by their ids
- ` + "`w-2` (`w`): running" + `

## Child threads that have ended
- ` + "`w-1` (`w`): completed: wrote it" + `
- ` + "`w-3` (`w`): error: no money" + `

## Files written through tools
- "a.go"
- "b/c.go\n## Not a heading"

## Artifacts, which you can still read by their references
- ` + "`0123456789abcdef`: 99 bytes, of rye_bash" + `
- ` + "`fedcba9876543210`: 7 bytes" + `
`

func TestManifest(t *testing.T) {
	t.Parallel()
	m := sample()
	if got := m.within(10_000); got != sampleText {
		t.Errorf("got\n%s\nwant\n%s", got, sampleText)
	}
	m = Manifest{Thread: "a-1", Via: thread.ViaResume, Position: 2, Directive: "a", Outputs: map[string]any{"sum": 3}}
	got := m.within(10_000)
	for _, want := range []string{"thread `a-1`, which had ended.", "## What it had returned\n- sum: 3\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n## "); n != 1 {
		t.Errorf("%d parts in\n%s", n, got)
	}
}

// within is the text within so many tokens.
func (m Manifest) within(tokens int64) string {
	most := tokens * bytesPerToken
	return m.at(m.detailFor(most), most)
}

// TestManifestShortens: as room runs out the parts go in the order in which they
// can be missed.
func TestManifestShortens(t *testing.T) {
	t.Parallel()
	m := Manifest{
		Thread: "a-1", Via: thread.ViaHandoff, Position: 2, Directive: "a", Task: strings.Repeat("Work. ", 2000) + "TASK END",
		Inputs: map[string]any{"text": strings.Repeat("v", 1500) + "INPUT END"},
	}
	for i := range 250 {
		c := Child{ThreadID: thread.ID(fmt.Sprintf("ended-%d", i)), Directive: "c", Status: thread.Completed, Result: strings.Repeat("r", 900) + "RESULT END"}
		m.Children = append(m.Children, c)
		m.Files = append(m.Files, fmt.Sprintf("file-%d", i))
	}
	m.Children = append(m.Children, Child{ThreadID: "live-1", Directive: "c", Status: thread.Running})
	order := []string{"RESULT END", "\"file-60\"", "INPUT END", "ended-239`", "\"file-249\"", "TASK END", "live-1"}
	gone := 0
	for tokens := int64(120_000); tokens > 150; tokens -= tokens/12 + 1 {
		text := m.within(tokens)
		if int64(len(text)) > tokens*bytesPerToken {
			t.Fatalf("%d bytes within %d tokens", len(text), tokens)
		}
		for gone < len(order) && !strings.Contains(text, order[gone]) {
			gone++
		}
		for i, mark := range order[gone:] {
			if !strings.Contains(text, mark) {
				t.Fatalf("with %d tokens %q is gone before %q", tokens, mark, order[gone:][max(0, i-1)])
			}
		}
		if gone < 5 && !strings.Contains(text, "that are not listed") {
			t.Fatalf("with %d tokens nothing says that files are missing", tokens)
		}
	}
	if gone < len(order)-1 {
		t.Errorf("%q never went", order[gone])
	}
	if text := m.within(150); !strings.HasPrefix(text, "# Where the work stands") || !strings.Contains(text, "`a-1`") {
		t.Errorf("the least: %s", text)
	}
}

// drawManifest makes manifests of which some are much too long.
func drawManifest(t *rapid.T) Manifest {
	m := Manifest{
		Thread: thread.ID(rapid.StringMatching(`[a-z/]{1,40}`).Draw(t, "thread")), Via: thread.ViaHandoff, Position: rapid.IntRange(2, 20).Draw(t, "position"),
		Directive: "d", Task: drawText(t, "task"), Inputs: map[string]any{}, Outputs: map[string]any{},
	}
	for _, name := range rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,5}`), 0, 4).Draw(t, "names") {
		m.Inputs[name], m.Outputs[name] = drawText(t, "value"), rapid.Float64().Draw(t, "number")
	}
	for range rapid.IntRange(0, 30).Draw(t, "things") {
		m.Children = append(m.Children, Child{
			ThreadID: "c-1", Directive: "c", Status: rapid.SampledFrom(thread.States()).Draw(t, "state"), Result: drawText(t, "result"),
		})
		m.Files = append(m.Files, drawText(t, "file"))
		m.Artifacts = append(m.Artifacts, Artifact{Ref: "ab", Bytes: 1, Tool: "t"})
	}
	return m
}

// TestCompose checks what is promised of everything a successor begins with.
func TestCompose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m, messages := drawManifest(rt), drawConversation(rt)
		before := clone(rt, messages)
		summary := ""
		if rapid.Bool().Draw(rt, "summed up") {
			summary = drawText(rt, "summary")
		}
		ceiling := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(1000, 40_000)).Draw(rt, "ceiling")
		seeded, turns := Compose(m, summary, messages, ceiling)
		if again, n := Compose(m, summary, messages, ceiling); n != turns || !reflect.DeepEqual(again, seeded) {
			rt.Fatal("another time it is something else")
		}
		if !reflect.DeepEqual(messages, before) {
			rt.Fatal("the conversation was changed")
		}
		ceiling = max(ceiling, MinCeiling)
		if used := Tokens(seeded...); used > ceiling && smallest(messages) <= ceiling/keptShare {
			rt.Fatalf("%d tokens within %d", used, ceiling)
		}
		checkSound(rt, seeded, messages)
		first := seeded[0]
		if first.Role != llm.User || len(first.Blocks) != 1 || !strings.HasPrefix(first.Blocks[0].Text, "# Where the work stands\n") || !utf8.ValidString(first.Blocks[0].Text) {
			rt.Fatalf("first %+v", first)
		}
		if steps := stepsOf(messages); len(steps) > 0 && len(seeded)-1 < len(steps[len(steps)-1]) {
			rt.Fatal("the last exchange is not there")
		}
		if turns != Turns(seeded) {
			rt.Fatalf("%d turns, and %d are there", turns, Turns(seeded))
		}
	})
}

// TestComposeSharesTheRoom: the conversation gives first, then the summary, and
// the manifest last.
// TestComposeWithoutThoughts: a successor is not given what was thought before other
// words than its own; the signature of a call stays with the call.
func TestComposeWithoutThoughts(t *testing.T) {
	t.Parallel()
	seeded, _ := Compose(Manifest{}, "", []llm.Message{
		llm.Text(llm.User, "do it"),
		{Role: llm.Assistant, Blocks: []llm.Block{
			{Type: llm.ReasoningBlock, Text: "hm", Signature: "s1"}, {Type: llm.ReasoningBlock, Signature: "redacted_thinking:s2"},
			{Type: llm.ToolUseBlock, ToolCallID: "c", ToolName: "f", Signature: "s3"},
		}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "c", Text: "seen"}}},
	}, 16_000)
	text := fmt.Sprintf("%+v", seeded)
	if strings.Contains(text, "s1") || strings.Contains(text, "s2") || !strings.Contains(text, "s3") || !strings.Contains(text, "seen") {
		t.Errorf("seeded %s", text)
	}
}

func TestComposeSharesTheRoom(t *testing.T) {
	t.Parallel()
	var messages []llm.Message
	for i := range 200 {
		messages = append(messages, call(fmt.Sprintf("c%d", i), `{}`, strings.Repeat("r", 1000))...)
	}
	summary := strings.Repeat("s", 8000) + "SUMMARY END"
	m := sample()

	seeded, turns := Compose(m, summary, messages, 16_000)
	text := seeded[0].Blocks[0].Text
	if !strings.HasPrefix(text, sampleText) || !strings.Contains(text, summaryTitle+"sss") || !strings.HasSuffix(text, "SUMMARY END") {
		t.Errorf("first message:\n%s", text)
	}
	if used := Tokens(seeded...); used > 16_000 || used < 15_600 || turns != (len(seeded)-1)/2 {
		t.Errorf("%d tokens, %d messages, %d turns", used, len(seeded), turns)
	}
	want := fmt.Sprintf("Of thread `team/build-1`, earlier messages that are not here: %d (turns: %d)", 400-2*turns, 200-turns)
	if !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}

	// A long summary leaves room for the last exchange only, and still has its end.
	seeded, turns = Compose(m, strings.Repeat(summary, 100), messages, 16_000)
	text = seeded[0].Blocks[0].Text
	if !strings.HasPrefix(text, sampleText) || !strings.HasSuffix(text, "SUMMARY END") || turns < 1 || turns > 3 || Tokens(seeded...) > 16_000 {
		t.Errorf("%d turns, %d tokens:\n%.3000s", turns, Tokens(seeded...), text)
	}

	// A long last exchange and a long task beside it: each has a share.
	m.Task = strings.Repeat("Do it. ", 20_000)
	seeded, turns = Compose(m, strings.Repeat(summary, 100), call("c", `{}`, strings.Repeat("r", 1<<20)), 16_000)
	text, last := seeded[0].Blocks[0].Text, seeded[2].Blocks[0].Text
	if turns != 1 || Tokens(seeded...) > 16_000 || len(last) < 15_000 || strings.Count(text, "s") < 15_000 || strings.Count(text, "Do it. ") < 2000 {
		t.Errorf("%d turns, %d tokens, %d bytes of the result, %d of the first message", turns, Tokens(seeded...), len(last), len(text))
	}

	// Nothing is left out, and nothing says so.
	seeded, turns = Compose(sample(), "", messages[:4], 16_000)
	if seeded[0].Blocks[0].Text != sampleText || turns != 2 || len(seeded) != 5 {
		t.Errorf("%d turns, %d messages:\n%s", turns, len(seeded), seeded[0].Blocks[0].Text)
	}
}

// TestComposeAgain: the successor of a successor has one record of the work, which
// is its own, and the summaries of all before it.
func TestComposeAgain(t *testing.T) {
	t.Parallel()
	var said []llm.Message
	for place := range 3 {
		m := sample()
		m.Position = place + 2
		said, _ = Compose(m, fmt.Sprintf("What came of part %d.", place+1), said, 16_000)
		said = append(said, call(fmt.Sprintf("c%d", place), `{}`, "ok")...)
	}
	var all strings.Builder
	for _, m := range said {
		for _, b := range m.Blocks {
			all.WriteString(b.Text + "\n")
		}
	}
	text := all.String()
	if strings.Count(text, recordTitle) != 1 || !strings.Contains(text, "You are thread 4 of its chain") {
		t.Errorf("it is told\n%s", text)
	}
	for part := range 3 {
		if strings.Count(text, fmt.Sprintf("\n\nWhat came of part %d.\n", part+1)) != 1 {
			t.Errorf("of part %d it is told\n%s", part+1, text)
		}
	}
	if len(said) != 9 {
		t.Errorf("%d messages", len(said))
	}
}
