package provider

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// keyed connects with the key of a provider. One that a command gives can be the token
// of an hour: when it is refused the command is asked for another, so that a thread can
// run for longer.
func (r *Registry) keyed(ctx context.Context, p config.Provider, connect func(key string) llm.Client) (llm.Client, error) {
	key, err := r.Key(ctx, p)
	if err != nil {
		return nil, err
	}
	if r.inVariable(p) || !givenByCommand(p) {
		return connect(key), nil
	}
	return &renewing{
		key: key, client: connect(key), connect: connect,
		renew: func(ctx context.Context, refused string) (string, error) { return r.keys.again(ctx, p, refused) },
	}, nil
}

// renewing is a client whose key can be replaced.
type renewing struct {
	connect func(key string) llm.Client
	renew   func(ctx context.Context, refused string) (string, error)

	mu     sync.Mutex
	key    string
	client llm.Client
}

// Stream implements [llm.Client].
func (c *renewing) Stream(ctx context.Context, req llm.Request, sink func(llm.Delta)) (llm.Response, error) {
	c.mu.Lock()
	client, key := c.client, c.key
	c.mu.Unlock()
	resp, err := client.Stream(ctx, req, sink)
	var refused *llm.APIError
	if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized || refused.MidStream {
		return resp, err
	}
	if client = c.renewed(ctx, key); client == nil {
		return resp, err
	}
	return client.Stream(ctx, req, sink)
}

// renewed is a client with another key; nil when there is none. That the key was
// refused says more than that the command failed.
func (c *renewing) renewed(ctx context.Context, refused string) llm.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key == refused {
		key, err := c.renew(ctx, refused)
		if err != nil || key == refused {
			return nil
		}
		c.key, c.client = key, c.connect(key)
	}
	return c.client
}
