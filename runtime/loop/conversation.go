package loop

import (
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// conversation is the message list with what is known about its size. The list
// is always the one that transcript.Messages rebuilds.
type conversation struct {
	messages []llm.Message
	// known is what the provider counted for the last call and its answer; it is
	// 0 before the first report. What came after that is counted in bytes, where
	// no token may be missed, and in characters, where an estimate will do.
	known    int64
	newBytes int64
	newChars int64
}

func (c *conversation) add(m llm.Message) {
	c.messages = append(c.messages, m)
	c.count(m)
}

func (c *conversation) count(m llm.Message) {
	c.newBytes += handoff.Size(m)
	c.newChars += charsOf(m)
}

// reported takes over what the provider counted; everything said until now is
// in it.
func (c *conversation) reported(u llm.Usage) {
	if u.Reported {
		c.known, c.newBytes, c.newChars = u.ContextTokens(), 0, 0
	}
}

// recount forgets what the provider counted, for another model counts in other
// tokens.
func (c *conversation) recount() {
	c.known, c.newBytes, c.newChars = 0, 0, 0
	for _, m := range c.messages {
		c.count(m)
	}
}

// acted reports whether the model has called a tool or said anything yet.
func (c *conversation) acted() bool {
	for _, m := range c.messages {
		if m.Role != llm.Assistant {
			continue
		}
		if a := (llm.Response{Blocks: m.Blocks}); len(toolCalls(a)) > 0 || llm.TextOf(a.Blocks) != "" {
			return true
		}
	}
	return false
}
