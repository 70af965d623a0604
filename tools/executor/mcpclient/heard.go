package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
)

// The library decodes the schemas of tools into a form that has no place for most
// keywords, and puts what a server says into the messages of its errors. These
// transports let a caller read what was really said.

// heard is the key of a *json.RawMessage in the context of a request, which takes
// the result as it was sent.
type heard struct{}

func hearing(ctx context.Context, result *json.RawMessage) context.Context {
	return context.WithValue(ctx, heard{}, result)
}

// RefusedError is an error that a server answered with.
type RefusedError struct {
	Code int    // of JSON-RPC
	Said string // foreign text
}

func (e *RefusedError) Error() string { return fmt.Sprintf("it answers with the error %d", e.Code) }

func hear(ctx context.Context, response *transport.JSONRPCResponse, err error) (*transport.JSONRPCResponse, error) {
	into, ok := ctx.Value(heard{}).(*json.RawMessage)
	switch {
	case err != nil || !ok:
		return response, err
	case response.Error != nil:
		return nil, &RefusedError{response.Error.Code, response.Error.Message}
	}
	*into = response.Result
	return response, nil
}

type overPipes struct{ *transport.Stdio }

// SendRequest ends with ctx, also where the server does not read and the library is writing. A
// write that has begun goes on, and fails when the connection ends.
func (t overPipes) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	type answer struct {
		response *transport.JSONRPCResponse
		err      error
	}
	answered := make(chan answer, 1)
	go func() {
		response, err := t.Stdio.SendRequest(ctx, r)
		answered <- answer{response, err}
	}()
	select {
	case a := <-answered:
		return hear(ctx, a.response, a.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type overHTTP struct{ *transport.StreamableHTTP }

func (t overHTTP) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	response, err := t.StreamableHTTP.SendRequest(ctx, r)
	return hear(ctx, response, err)
}
