// Package lenient asks once more, without what a provider has refused of a request
// that the request can do without: how much to think, what was thought in a
// conversation that the provider takes for another one, and images. Such refusals come
// before an answer and cost nothing. It is a client in front of a client.
//
// Vendors sign what their models think, and newer models of Anthropic's take it back
// only behind exactly the words, the tools and the system prompt that it came behind
// ("Preserved thinking" in Anthropic's documentation); OpenAI takes back what it can
// decrypt. A thread that is resumed can have other tools than before, and one that is
// on its last turn has fewer. An image that cannot be read is refused in every request
// of the conversation that it is in.
package lenient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// client is an [llm.Client] in front of another, for one conversation.
type client struct {
	behind llm.Client

	mu       sync.Mutex
	noEffort bool // the model takes no word for how much to think
	left     omission
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
	req.Messages = c.left.apply(req.Messages)
	return req
}

// concede gives up what an error says was refused, and tells so; empty when there is
// nothing to give up.
func (c *client) concede(req llm.Request, err error) (warning string) {
	var refused *llm.APIError
	if !errors.As(err, &refused) || !isRefusal(refused.Status) || refused.MidStream {
		return ""
	}
	says := strings.ToLower(refused.Message + " " + refused.Code)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case req.Effort != "" && !c.noEffort && strings.Contains(says, "effort"):
		c.noEffort = true
		return fmt.Sprintf("model %s does not take effort=%q and thinks as it does by itself", req.Model, req.Effort)
	case isAboutThoughts(says) && c.left.give(req.Messages, thoughts):
		return fmt.Sprintf("model %s does not take back what was thought earlier in this conversation, and goes on without it", req.Model)
	case strings.Contains(says, "image") && c.left.give(req.Messages, images):
		return fmt.Sprintf("model %s refused an image in this conversation, and goes on without the images so far: %s", req.Model, refused.Message)
	}
	return ""
}

// isRefusal reports whether a status says that the request is wrong: servers that check
// it against a schema say 422.
func isRefusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
}

// isAboutThoughts reports whether a refusal names what vendors call the thoughts of
// their models. Some name the member of a message as a path to it.
func isAboutThoughts(says string) bool {
	for _, name := range []string{
		"thinking", "encrypted_content", "encrypted content", "reasoning_content", "reasoning_details",
		"'reasoning'", `"reasoning"`, ".reasoning", "reasoning item", "thought_signature", "thought signature",
	} {
		if strings.Contains(says, name) {
			return true
		}
	}
	return false
}
