package handoff

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// call is an answer with one call, and the message of its result.
func call(id, input, result string) []llm.Message {
	return []llm.Message{
		{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ToolUseBlock, ToolCallID: id, ToolName: "t", Input: json.RawMessage(input)}}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: id, Text: result}}},
	}
}

func user(text string) []llm.Message { return []llm.Message{llm.Text(llm.User, text)} }

func TestTrail(t *testing.T) {
	t.Parallel()
	prompt, first, nudge := user("do it"), call("c1", `{"a":1}`, "one"), user("go on")
	last := call("c2", `{"a":2}`, "two")
	said := []llm.Message{llm.Text(llm.Assistant, "I am done")}
	all := slices.Concat(prompt, first, nudge, last)
	two := []llm.Message{
		{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ToolUseBlock, ToolCallID: "c2"}, {Type: llm.ToolUseBlock, ToolCallID: "c1"}}},
		{Role: llm.User, Blocks: []llm.Block{{Type: llm.ToolResultBlock, ToolCallID: "c1"}, {Type: llm.ToolResultBlock, ToolCallID: "c2"}}},
	}
	for name, tt := range map[string]struct {
		messages []llm.Message
		tokens   int64
		want     []llm.Message
		turns    int
	}{
		"nothing":                          {nil, 1000, nil, 0},
		"everything":                       {all, 1000, all, 2},
		"exactly everything":               {all, Tokens(all...), all, 2},
		"one token less":                   {all, Tokens(all...) - 1, all[1:], 2},
		"without half a call":              {all, Tokens(all[3:]...) + Tokens(first...) - 1, all[3:], 1},
		"the last exchange":                {all, Tokens(last...), last, 1},
		"what follows the last answer too": {slices.Concat(all, nudge), Tokens(last...) + Tokens(nudge...), slices.Concat(last, nudge), 1},
		"nothing but prompts":              {slices.Concat(prompt, nudge), Tokens(nudge...), nudge, 0},
		"an answer without calls":          {slices.Concat(first, said), Tokens(said...), said, 1},
		"results in another order":         {two, 1000, two, 1},
		"more than the last exchange":      {slices.Concat(prompt, last, nudge), 1, slices.Concat(last, nudge), 1},
		"an open call":                     {slices.Concat(prompt, last[:1]), 1000, prompt, 0},
		"a result of nothing":              {slices.Concat(prompt, last[1:]), 1000, prompt, 0},
		"a result of another call":         {slices.Concat(prompt, first[:1], last[1:], said), 1000, slices.Concat(prompt, said), 1},
	} {
		kept, turns := trail(tt.messages, tt.tokens)
		if !reflect.DeepEqual(kept, tt.want) || turns != tt.turns {
			t.Errorf("%s: got %d turns, %+v; want %d, %+v", name, turns, kept, tt.turns, tt.want)
		}
	}
}

// TestTrailShortens: the longer parts of the last exchange give first, and what is
// left out is said.
func TestTrailShortens(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("begin ", 500) + strings.Repeat("end ", 500)
	exchange := []llm.Message{
		{Role: llm.Assistant, Blocks: []llm.Block{
			{Type: llm.ReasoningBlock, Text: "hm", Signature: "s"},
			{Type: llm.TextBlock, Text: "I write."},
			{Type: llm.ToolUseBlock, ToolCallID: "c1", ToolName: "write", Input: json.RawMessage(`{"text":"` + long + `"}`)},
			{Type: llm.ToolUseBlock, ToolCallID: "c2", ToolName: "look", Input: json.RawMessage(`{"at":"x"}`)},
		}},
		{Role: llm.User, Blocks: []llm.Block{
			{Type: llm.ToolResultBlock, ToolCallID: "c1", Text: long, IsError: true},
			{Type: llm.ToolResultBlock, ToolCallID: "c2", Images: []llm.Image{{MediaType: "image/png", Ref: "ab"}}},
		}},
	}
	kept, turns := trail(slices.Concat(user("do it"), exchange), 600)
	if turns != 1 || len(kept) != 2 || Tokens(kept...) > 600 {
		t.Fatalf("%d turns, %d tokens: %+v", turns, Tokens(kept...), kept)
	}
	answer, results := kept[0].Blocks, kept[1].Blocks
	if len(answer) != 3 || answer[0].Text != "I write." || string(answer[1].Input) != `{"left_out":"5011 bytes"}` || string(answer[2].Input) != `{"at":"x"}` {
		t.Errorf("answer %+v", answer)
	}
	if text := results[0].Text; !strings.HasPrefix(text, "begin ") || !strings.HasSuffix(text, "end ") ||
		!strings.Contains(text, " bytes left out …]") || !results[0].IsError || len(text) < 1000 {
		t.Errorf("result %q", text)
	}
	if results[1].Text != "[1 images left out]" || results[1].Images != nil {
		t.Errorf("result %+v", results[1])
	}

	// Without the images there is room for the rest.
	kept, _ = trail(exchange, Tokens(exchange...)-1)
	if answer := kept[0].Blocks; len(answer) != 4 || answer[0].Signature != "s" || len(answer[2].Input) < 5000 || kept[1].Blocks[1].Images != nil {
		t.Errorf("kept %+v", kept)
	}
	only := []llm.Message{{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ReasoningBlock, Text: long}}}}
	if kept, _ := trail(only, 100); len(kept) != 1 || kept[0].Blocks[0].Text != "[reasoning left out]" {
		t.Errorf("kept %+v", kept)
	}
}

// smallest is the size to which the last exchange of messages can be brought.
func smallest(messages []llm.Message) int64 {
	steps := stepsOf(messages)
	if len(steps) == 0 {
		return 0
	}
	return Tokens(shortened(slices.Concat(steps[lastExchange(steps):]...), 0)...)
}

// TestTrailHolds checks what is promised of every conversation and every room.
func TestTrailHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		messages := drawConversation(rt)
		before := clone(rt, messages)
		tokens := rapid.OneOf(rapid.Int64Range(-5, 400), rapid.Int64Range(0, 20_000)).Draw(rt, "tokens")
		kept, turns := trail(messages, tokens)
		if again, n := trail(messages, tokens); n != turns || !reflect.DeepEqual(again, kept) {
			rt.Fatal("another time it is another end")
		}
		if !reflect.DeepEqual(messages, before) {
			rt.Fatal("the conversation was changed")
		}
		checkSound(rt, kept, messages)
		if used := Tokens(kept...); used > max(tokens, smallest(messages)) {
			rt.Fatalf("%d tokens, with room for %d and a last exchange of %d", used, tokens, smallest(messages))
		}
		steps := stepsOf(messages)
		if len(steps) == 0 {
			return
		}
		all := slices.Concat(steps...)
		last := lastExchange(steps)
		if least := len(slices.Concat(steps[last:]...)); len(kept) < least || turns != Turns(all[len(all)-len(kept):]) {
			rt.Fatalf("%d messages and %d turns kept of a last exchange of %d", len(kept), turns, least)
		}
		if Tokens(slices.Concat(steps[last:]...)...) > tokens {
			return // it was shortened
		}
		if !reflect.DeepEqual(kept, all[len(all)-len(kept):]) {
			rt.Fatal("it is not the end of the conversation")
		}
		left := stepsOf(all[:len(all)-len(kept)])
		if len(left) > 0 && Tokens(kept...)+Tokens(left[len(left)-1]...) <= tokens {
			rt.Fatal("there was room for more")
		}
	})
}

func FuzzCutMiddle(f *testing.F) {
	f.Add("some text that is cut", 4)
	f.Add(strings.Repeat("é語\n", 90), 100)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if !utf8.ValidString(text) {
			t.Skip("texts of messages are valid UTF-8")
		}
		short := cutMiddle(text, most)
		if len(short) > max(most, len("\n[… 999999999 bytes left out …]\n")) || len(short) > len(text) || !utf8.ValidString(short) {
			t.Fatalf("%q within %d is %q", text, most, short)
		}
		if len(text) <= most && short != text {
			t.Fatalf("%q has room in %d and is %q", text, most, short)
		}
	})
}
