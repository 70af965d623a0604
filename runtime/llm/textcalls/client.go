// Package textcalls lets models call tools that cannot do so through the protocol of
// their provider (one that is declared as "tool_use: text"). They are told to write a
// call into their answer as a fenced block of JSON,
//
//	```json
//	{"tool": "rye_file_system_read", "arguments": {"path": "go.mod"}}
//	```
//
// and are given results as text, each in a fence that it cannot close: what a tool
// returns may come from anywhere, and must not pass for words of the runtime or of
// the user. That is so on the wire only: the caller gives and gets calls and results as
// blocks like any other.
package textcalls

import (
	"context"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// client is an [llm.Client] in front of another, for one conversation.
type client struct {
	behind   llm.Client
	offered  func(tool string) bool
	talk     conversation
	tools    []llm.Tool // that are described
	describe string     // how
}

// New returns a client for one conversation, whose requests are made one at a time.
// Offered says which names are of tools that can be called: other forms than the one
// that models are asked for are only read of those. More may be described.
func New(behind llm.Client, offered func(tool string) bool) llm.Client {
	return &client{behind: behind, offered: offered}
}

// Stream implements [llm.Client]. A request without tools is passed on as it is. Pieces
// of the answer are told as they were written; calls are in the whole answer.
func (c *client) Stream(ctx context.Context, req llm.Request, sink func(llm.Delta)) (llm.Response, error) {
	if len(req.Tools) == 0 {
		return c.behind.Stream(ctx, req, sink)
	}
	answer, err := c.behind.Stream(ctx, c.inText(req), sink)
	if err != nil {
		return answer, err
	}
	return readCalls(answer, req.Turn, c.offered, c.talk.quotes), nil
}

// inText is the request with instructions in place of tools, and calls and
// results as text.
func (c *client) inText(req llm.Request) llm.Request {
	if !sameTools(c.tools, req.Tools) {
		c.tools, c.describe = req.Tools, instructions(req.Tools)
	}
	req.Tools = nil
	if req.System != "" {
		req.System += "\n\n"
	}
	req.System += c.describe
	req.Messages = c.talk.show(req.Messages)
	return req
}

// sameTools recognises a list of tools, which nobody changes.
func sameTools(a, b []llm.Tool) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Size is how long the description of tools is that the system prompt gets.
func Size(tools []llm.Tool) (bytes, chars int64) {
	text := instructions(tools)
	return int64(len(text)), int64(utf8.RuneCountInString(text))
}
