package loop

import "github.com/rye-mcp/rye-mcp/runtime/llm"

// blockMarks is more than the tokens that a provider, or [textTalk.inText], puts around
// a block for its role and kind.
const blockMarks = 64

// imageSize is what an image counts for, in bytes. As tokens it is more than the
// vendors make of one (Anthropic at most 4 784, OpenAI and Google fewer), and as
// bytes, of which four are a token, what they make of one of a usual size.
const imageSize = 6400

// conversation is the message list with what is known about its size. The list
// is always the one that transcript.Messages rebuilds.
type conversation struct {
	messages []llm.Message
	// known is what the provider counted for the last call and its answer; it is
	// 0 before the first report. newBytes came after that.
	known    int64
	newBytes int64
}

func (c *conversation) add(m llm.Message) {
	c.messages = append(c.messages, m)
	c.newBytes += sizeOf(m)
}

// reported takes over what the provider counted; everything said until now is
// in it.
func (c *conversation) reported(u llm.Usage) {
	if u.Reported {
		c.known, c.newBytes = u.ContextTokens(), 0
	}
}

// recount forgets what the provider counted, for another model counts in other
// tokens.
func (c *conversation) recount() {
	c.known, c.newBytes = 0, 0
	for _, m := range c.messages {
		c.newBytes += sizeOf(m)
	}
}

// acted reports whether the model has called a tool or said anything yet.
func (c *conversation) acted() bool {
	for _, m := range c.messages {
		if m.Role != llm.Assistant {
			continue
		}
		if a := (llm.Response{Blocks: m.Blocks}); len(toolCalls(a)) > 0 || textOf(a) != "" {
			return true
		}
	}
	return false
}

// sizeOf is the size of a message in bytes, which it does not exceed in tokens;
// images count as [imageSize].
func sizeOf(m llm.Message) int64 {
	var n int64
	for _, b := range m.Blocks {
		n += int64(imageSize * len(b.Images))
		n += int64(blockMarks + len(b.Text) + len(b.Input) + len(b.ToolName) + len(b.ToolCallID) + len(b.Signature))
	}
	return n
}
