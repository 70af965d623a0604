// Package recorded is a client that answers with what a model answered before. It has no
// connection to anything.
package recorded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// Call is a call of a model that was recorded: its answer, or its failure.
type Call struct {
	Turn    int
	At      time.Time // when it ended
	Answer  llm.Response
	Failure *llm.APIError // nil: there is an answer
}

// Client answers with recorded calls, in their order, whatever it is asked.
type Client struct {
	// Began is told of each call before it is answered; it may be nil.
	Began func(Call)

	mu    sync.Mutex
	calls []Call
	next  int
	over  *OverError
}

var _ llm.Client = (*Client)(nil)

// New returns a client that answers with these calls.
func New(calls []Call) *Client { return &Client{calls: calls} }

// OverError says that a model was asked again after the last call on record.
type OverError struct {
	Turn  int // that was asked for
	Calls int // that there are
}

func (e *OverError) Error() string {
	return fmt.Sprintf("the recording ends here: the model is asked for turn %d, and no answer to that is on record", e.Turn)
}

// Stream implements [llm.Client]. After the last call the error is an *[OverError].
func (c *Client) Stream(ctx context.Context, req llm.Request, _ func(llm.Delta)) (llm.Response, error) {
	if ctx.Err() != nil {
		return llm.Response{}, context.Cause(ctx)
	}
	call, err := c.take(req.Turn)
	if err != nil {
		return llm.Response{}, err
	}
	if c.Began != nil {
		c.Began(call)
	}
	if req.Sent != nil {
		req.Sent(0)
	}
	if call.Failure != nil {
		return llm.Response{}, call.Failure
	}
	return call.Answer, nil
}

func (c *Client) take(turn int) (Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == len(c.calls) {
		c.over = &OverError{Turn: turn, Calls: len(c.calls)}
		return Call{}, c.over
	}
	c.next++
	return c.calls[c.next-1], nil
}

// Over is the refusal of a call after the last one; nil when there was none.
func (c *Client) Over() *OverError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// Left is how many calls nobody has asked for.
func (c *Client) Left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) - c.next
}
