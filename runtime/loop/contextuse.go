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
	return max(used, r.carriedUse()), window
}

// carriedUse is how many tokens the conversation uses by what was counted of it before it
// was taken over; 0: that is not known.
func (r *run) carriedUse() int64 {
	c := r.conversation
	if c.carried == 0 {
		return 0
	}
	used, _ := limit.ContextUse(r.model.choice.Model, c.carried, c.newChars-c.carriedChars)
	return used
}

// contextShare is how much of the context window the conversation uses.
func (r *run) contextShare() float64 {
	used, window := r.contextUse()
	return float64(used) / float64(window)
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
