// Package lenient asks once more, without what a provider has refused of a request
// that the request can do without: how much to think, and what was thought in a
// conversation that the provider takes for another one. Such refusals come before an
// answer and cost nothing. It is a client in front of a client.
//
// Vendors sign what their models think, and newer models of Anthropic's take it back
// only behind exactly the words, the tools and the system prompt that it came behind
// ("Preserved thinking" in Anthropic's documentation); OpenAI takes back what it can
// decrypt. A thread that is resumed can have other tools than before, and one that is
// on its last turn has fewer.
package lenient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unsafe"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// client is an [llm.Client] in front of another, for one conversation.
type client struct {
	behind llm.Client

	mu       sync.Mutex
	noEffort bool // the model takes no word for how much to think
	// plain are the messages with which the conversation began when what was thought in
	// it was refused, without it; of are the same as they were given.
	plain, of []llm.Message
}

// New returns a client for one conversation.
func New(behind llm.Client) llm.Client { return &client{behind: behind} }

// Stream implements [llm.Client].
func (c *client) Stream(ctx context.Context, req llm.Request, sink func(llm.Delta)) (llm.Response, error) {
	if sent := req.Sent; sent != nil {
		var told sync.Once
		req.Sent = func(bytes int64) { told.Do(func() { sent(bytes) }) }
	}
	var warnings []string
	for {
		resp, err := c.behind.Stream(ctx, c.without(req), sink)
		warning := c.concede(req, err)
		if warning == "" {
			resp.Warnings = append(resp.Warnings, warnings...)
			return resp, err
		}
		warnings = append(warnings, warning)
	}
}

// without is a request without what was refused of it.
func (c *client) without(req llm.Request) llm.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noEffort {
		req.Effort = ""
	}
	if n := len(c.of); n > 0 && len(req.Messages) >= n && same(c.of[n-1], req.Messages[n-1]) {
		req.Messages = append(c.plain[:n:n], req.Messages[n:]...)
	}
	return req
}

// same reports whether two messages are one, by the array of their blocks.
func same(a, b llm.Message) bool {
	return len(a.Blocks) == len(b.Blocks) && unsafe.SliceData(a.Blocks) == unsafe.SliceData(b.Blocks)
}

// concede gives up what an error says was refused, and tells so; empty when there is
// nothing to give up. Each thing is given up once for a conversation.
func (c *client) concede(req llm.Request, err error) (warning string) {
	var refused *llm.APIError
	if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || refused.MidStream {
		return ""
	}
	says := strings.ToLower(refused.Message + " " + refused.Code)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case req.Effort != "" && !c.noEffort && strings.Contains(says, "effort"):
		c.noEffort = true
		return fmt.Sprintf("model %s does not take effort=%q and thinks as it does by itself", req.Model, req.Effort)
	case isAboutThoughts(says) && len(c.of) < len(req.Messages) && hasThoughts(req.Messages[len(c.of):]):
		c.of, c.plain = req.Messages, make([]llm.Message, len(req.Messages))
		for i, m := range req.Messages {
			c.plain[i] = withoutThoughts(m)
		}
		return fmt.Sprintf("model %s does not take back what was thought earlier in this conversation, and goes on without it", req.Model)
	}
	return ""
}

// isAboutThoughts reports whether a refusal names what vendors call the thoughts of
// their models.
func isAboutThoughts(says string) bool {
	for _, name := range []string{"thinking", "encrypted_content", "encrypted content", "'reasoning'", "reasoning item", "thought_signature", "thought signature"} {
		if strings.Contains(says, name) {
			return true
		}
	}
	return false
}

func hasThoughts(messages []llm.Message) bool {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Type == llm.ReasoningBlock || b.Signature != "" {
				return true
			}
		}
	}
	return false
}

// withoutThoughts is a message without reasoning and signatures, or the same where
// there are none.
func withoutThoughts(m llm.Message) llm.Message {
	if !hasThoughts([]llm.Message{m}) {
		return m
	}
	rest := make([]llm.Block, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		if b.Type == llm.ReasoningBlock {
			continue
		}
		b.Signature = ""
		rest = append(rest, b)
	}
	return llm.Message{Role: m.Role, Blocks: rest}
}
