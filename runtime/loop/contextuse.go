package loop

import (
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// contextUse is how many tokens the conversation uses, estimated, and how many
// the context window of its model has.
func (r *run) contextUse() (used, window int64) {
	used, window = limit.ContextUse(r.model.choice.Model, r.conversation.known, r.newChars())
	return max(used, r.conversation.carriedUse(r.model.choice.Model)), window
}

// newChars is what the provider has not counted yet, in characters: before its
// first report that includes the system prompt and the tools.
func (r *run) newChars() int64 {
	if r.conversation.known > 0 {
		return r.conversation.newChars
	}
	return r.conversation.newChars + r.fixedChars()
}

// fixedChars is what every call sends beside the conversation: the system prompt
// and the tools with their schemas.
func (r *run) fixedChars() int64 {
	_, tools := r.model.toolSize(r.toolset.tools)
	return chars(r.system) + tools
}

// charsOf is what a message counts for in characters: its texts, the arguments of
// calls, and images by their size.
func charsOf(m llm.Message) int64 {
	var n int64
	for _, b := range m.Blocks {
		n += chars(b.Text) + chars(b.ToolName) + chars(string(b.Input))
		if len(b.Images) > 0 {
			n += handoff.Size(llm.Message{Blocks: []llm.Block{{Images: b.Images}}})
		}
	}
	return n
}

func chars(text string) int64 { return int64(utf8.RuneCountInString(text)) }

// isFull reports whether a conversation uses so much of its context window that little more fits.
func isFull(used, window int64) bool { return float64(used) > fullContext*float64(window) }
