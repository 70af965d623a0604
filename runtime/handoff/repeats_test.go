package handoff

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// TestRepeats: a result that refers to one which is left out has its content, and the room
// is reckoned with that; what it refers to is not repeated where it is there.
func TestRepeats(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("the content ", 100)
	read := call("c1", `{"path":"spec"}`, content)
	read[1].Blocks[0].Content = llm.ContentOf("s1", "")
	read[1].Blocks[0].Images = []llm.Image{{MediaType: "image/png", Ref: "ab"}}
	repeat := func(id string) []llm.Message {
		again := call(id, `{"path":"spec"}`, "[the same as the result of your call t in turn 1 (c1), which is not repeated]")
		again[1].Blocks[0].Content = llm.ContentOf("", "s1")
		return again
	}
	between, said := call("c2", "{}", strings.Repeat("x", 4000)), []llm.Message{llm.Text(llm.Assistant, "so")}
	all := slices.Concat(user("do it"), read, between, repeat("c1")) // some providers give ids again
	before := copied(all)

	kept, _ := trail(all, 10_000)
	if !reflect.DeepEqual(kept, all) {
		t.Errorf("with room for all: %+v", kept)
	}
	kept, _ = trail(all, Tokens(read...))
	if b := kept[len(kept)-1].Blocks[0]; b.Text != content || len(b.Images) != 1 || b.Sum() != "s1" || b.SameAs() != "" || b.ToolCallID != "c1" || len(kept) != 2 {
		t.Errorf("without what it refers to: %d messages, %+v", len(kept), b)
	}
	if !reflect.DeepEqual(all, before) {
		t.Error("the conversation was changed")
	}

	two := slices.Concat(read, between, repeat("c3"), repeat("c4"), said)
	kept, _ = trail(two, Tokens(two[len(two)-5:]...)+Tokens(read...))
	if first, second := kept[1].Blocks[0], kept[3].Blocks[0]; len(kept) != 5 || first.Text != content || second.SameAs() != "s1" ||
		second.Text != "[the same as the result of your call t (c3), which is not repeated]" {
		t.Errorf("two that refer to it: %+v", kept)
	}
	again, _ := trail(slices.Concat(kept, between, between), Tokens(between...))
	if len(again) != 2 {
		t.Errorf("handed over once more: %+v", again)
	}
	again, _ = trail(kept[2:], 10_000)
	if b := again[1].Blocks[0]; b.Text != repeatGone || b.SameAs() != "" {
		t.Errorf("what it refers to is nowhere: %+v", b)
	}
	short, _ := trail(slices.Concat(read, between, repeat("c5")), 200)
	if text := short[1].Blocks[0].Text; Tokens(short...) > 200 || !strings.HasPrefix(text, "the content") || !strings.Contains(text, "bytes left out") {
		t.Errorf("with little room: %+v", short)
	}
}
