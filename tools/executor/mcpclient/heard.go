package mcpclient

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
)

// The library decodes the schemas of tools into a form that has no place for most
// keywords, so that they are read from what the server has really said. These
// transports let a caller hear that.

// heard is the key of a *json.RawMessage in the context of a request, which takes
// the result as it was sent.
type heard struct{}

func hearing(ctx context.Context, result *json.RawMessage) context.Context {
	return context.WithValue(ctx, heard{}, result)
}

func hear(ctx context.Context, response *transport.JSONRPCResponse, err error) (*transport.JSONRPCResponse, error) {
	if into, ok := ctx.Value(heard{}).(*json.RawMessage); ok && err == nil {
		*into = response.Result
	}
	return response, err
}

type overPipes struct{ *transport.Stdio }

func (t overPipes) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	response, err := t.Stdio.SendRequest(ctx, r)
	return hear(ctx, response, err)
}

type overHTTP struct{ *transport.StreamableHTTP }

func (t overHTTP) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	response, err := t.StreamableHTTP.SendRequest(ctx, r)
	return hear(ctx, response, err)
}
