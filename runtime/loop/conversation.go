package loop

import "github.com/rye-mcp/rye-mcp/runtime/llm"

// conversation is the message list with what is known about its size.
type conversation struct {
	messages []llm.Message
	// known is what the provider counted for the last call and its answer; it is
	// 0 before the first report. newBytes came after that.
	known    int64
	newBytes int64
}

func (c *conversation) add(m llm.Message) {
	c.messages = append(c.messages, m)
	for _, b := range m.Blocks {
		c.newBytes += int64(len(b.Text) + len(b.Input) + len(b.ToolName) + len(b.Signature))
	}
}

// reported takes over what the provider counted; everything said until now is
// in it.
func (c *conversation) reported(u llm.Usage) {
	if !u.Reported {
		return
	}
	c.known, c.newBytes = u.ContextTokens(), 0
}
