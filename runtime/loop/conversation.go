package loop

import (
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// conversation is the message list with what is known about its size. The list
// is always the one that transcript.Messages rebuilds.
type conversation struct {
	messages []llm.Message
	// known is what the provider counted for the last call and its answer; it is
	// 0 before the first report. All that came after that is counted in bytes, where
	// no token may be missed, and in characters, where an estimate will do.
	known    int64
	newBytes int64
	newChars int64
	said     int64 // characters of all that is sent of it in any case, so without thoughts and images
	// carried is what the provider counted for the beginning of a conversation that was
	// taken over, with the system prompt and the tools of then, and carriedChars and
	// carriedBytes what that beginning has of both. It is 0 once there is a report.
	carried      int64
	carriedChars int64
	carriedBytes int64
}

// carry takes over what the provider of a model has counted of the messages that are
// there.
func (c *conversation) carry(counted transcript.Count) {
	c.carried, c.carriedChars, c.carriedBytes = counted.Tokens, 0, 0
	for _, m := range c.messages[:counted.Messages] {
		c.carriedChars += charsOf(m)
		c.carriedBytes += handoff.Size(m)
	}
}

// carriedUse is how many tokens of a model the conversation uses by what was counted of it
// before it was taken over; 0: that is not known.
func (c *conversation) carriedUse(of llm.Model) int64 {
	if c.carried == 0 {
		return 0
	}
	used, _ := limit.ContextUse(of, c.carried, c.newChars-c.carriedChars)
	return used
}

// most is how many tokens the next call can be given at most, of which newBytes are not
// counted yet, with what is sent beside the conversation: each of those bytes is one. The
// count of a conversation that was taken over has the system prompt and the tools of then
// in it, and those of now come on top.
func (c *conversation) most(newBytes int64) int64 {
	most := thread.Sum(c.known, newBytes)
	if c.carried == 0 {
		return most
	}
	return min(most, thread.Sum(c.carried, newBytes-c.carriedBytes))
}

// tookOver is how many tokens a thread has taken over of a conversation, estimated; 0 for what
// a handoff has made, which is as short as that of another.
func (c *conversation) tookOver(from *thread.Continuation) int64 {
	if from == nil || from.Via == thread.ViaHandoff {
		return 0
	}
	return handoff.Tokens(c.messages[:from.Messages]...)
}

func (c *conversation) add(m llm.Message) {
	c.messages = append(c.messages, m)
	c.count(m)
	for _, b := range m.Blocks {
		if b.Type != llm.ReasoningBlock {
			c.said += chars(b.Text) + chars(string(b.Input))
		}
	}
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
		c.carried, c.carriedChars, c.carriedBytes = 0, 0, 0
	}
}

// recount forgets what the provider counted, for another model counts in other
// tokens.
func (c *conversation) recount() {
	c.known, c.newBytes, c.newChars = 0, 0, 0
	c.carried, c.carriedChars, c.carriedBytes = 0, 0, 0
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
