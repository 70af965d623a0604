package handoff

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// shortened are messages within so many tokens, or as small as they can be. The
// parts that can be missed most easily are given up first.
func shortened(messages []llm.Message, tokens int64) []llm.Message {
	short := copied(messages)
	for _, leaveOut := range []func(*llm.Message){leaveOutImages, leaveOutReasoning} {
		for i := range short {
			leaveOut(&short[i])
		}
		if Tokens(short...) <= tokens {
			return short
		}
	}
	// No part is longer than the longest; the longer parts give first.
	longest := 0
	for _, m := range short {
		for _, b := range m.Blocks {
			longest = max(longest, len(b.Text), len(b.Input))
		}
	}
	tooLong := sort.Search(longest, func(most int) bool { return Tokens(bounded(short, most)...) > tokens })
	return bounded(short, max(0, tooLong-1))
}

// copied are messages whose blocks can be changed.
func copied(messages []llm.Message) []llm.Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i].Blocks = slices.Clone(out[i].Blocks)
	}
	return out
}

func leaveOutImages(m *llm.Message) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if len(b.Images) == 0 {
			continue
		}
		b.Text = strings.TrimPrefix(fmt.Sprintf("%s\n[%d images left out]", b.Text, len(b.Images)), "\n")
		b.Images = nil
		if b.Type == llm.ImageBlock {
			b.Type = llm.TextBlock
		}
	}
}

// leaveOutReasoning takes reasoning out whole: a part of it does not go with the
// vendor's signature.
func leaveOutReasoning(m *llm.Message) {
	if !slices.ContainsFunc(m.Blocks, func(b llm.Block) bool { return b.Type == llm.ReasoningBlock }) {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(m.Blocks), func(b llm.Block) bool { return b.Type == llm.ReasoningBlock })
	if len(rest) == 0 && len(m.Blocks) > 0 {
		rest = []llm.Block{{Type: llm.TextBlock, Text: "[reasoning left out]"}}
	}
	m.Blocks = rest
}

// bounded are messages in which no text and no input is longer than so many
// bytes, or than the note that stands in its place.
func bounded(messages []llm.Message, most int) []llm.Message {
	out := copied(messages)
	for _, m := range out {
		for i := range m.Blocks {
			b := &m.Blocks[i]
			b.Text = cutMiddle(b.Text, most)
			b.Input = boundedInput(b.Input, most)
		}
	}
	return out
}

// cutMiddle is a text within so many bytes: its beginning, how much is left out,
// and its end. The note alone may be longer; then the text is never longer than
// it was.
func cutMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	note := func(left int) string { return fmt.Sprintf("\n[… %d bytes left out …]\n", left) }
	room := max(0, most-len(note(len(text))))
	head := item.Begin(text, room*2/3)
	tail := item.End(text, room/3)
	short := head + note(len(text)-len(head)-len(tail)) + tail
	if len(short) >= len(text) {
		return text
	}
	return short
}

// boundedInput is the input of a call, or an object that says how long it was.
func boundedInput(input json.RawMessage, most int) json.RawMessage {
	instead := fmt.Sprintf(`{"left_out":"%d bytes"}`, len(input))
	if len(input) <= max(most, len(instead)) {
		return input
	}
	return json.RawMessage(instead)
}
