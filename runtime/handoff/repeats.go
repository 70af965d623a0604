package handoff

import (
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/tools/guard"
)

// repeatGone stands in place of a reference to a result that is nowhere.
const repeatGone = "[the same as an earlier result, which is not here any more; call it again if you need it]"

// whole are the messages of the steps from one on. Where a result only refers to one that
// stands before them, the content of that one takes its place, once.
func whole(steps [][]llm.Message, first int) []llm.Message {
	kept := slices.Concat(steps[first:]...)
	there := contentsOf(kept)
	var cut map[string]llm.Block // what the steps have, made when it is needed
	moved := map[string]string{} // the calls that have been given a content
	for i := range kept {
		for j, b := range kept[i].Blocks {
			if _, here := there[b.SameAs()]; here || b.SameAs() == "" {
				continue
			}
			if cut == nil {
				cut = contentsOf(slices.Concat(steps...))
			}
			original, known := cut[b.SameAs()]
			switch call, again := moved[b.SameAs()]; {
			case again:
				b.Text = guard.Reference(call)
			case known:
				moved[b.SameAs()] = callOf(kept[max(0, i-1)], b.ToolCallID)
				b.Text, b.Images, b.Content = original.Text, original.Images, original.Content
			default:
				b.Text, b.Content = repeatGone, nil
			}
			kept[i].Blocks = slices.Clone(kept[i].Blocks)
			kept[i].Blocks[j] = b
		}
	}
	return kept
}

// contentsOf are the results that others can refer to, by their sums.
func contentsOf(messages []llm.Message) map[string]llm.Block {
	contents := map[string]llm.Block{}
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Sum() != "" && b.SameAs() == "" {
				contents[b.Sum()] = b
			}
		}
	}
	return contents
}

// callOf says which call of an answer has that id.
func callOf(answer llm.Message, id string) string {
	for _, b := range answer.Blocks {
		if b.Type == llm.ToolUseBlock && b.ToolCallID == id {
			return fmt.Sprintf("%s (%s)", b.ToolName, id)
		}
	}
	return id
}
