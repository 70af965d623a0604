// Package anthropic speaks the Messages API of Anthropic, and of whoever
// offers the same protocol, through Anthropic's own library.
package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// Config is how to reach the provider. The base URL stands before
// "/v1/messages"; a "/v1" at its end is tolerated.
type Config = wire.Config

// defaultBaseURL is Anthropic's own.
const defaultBaseURL = "https://api.anthropic.com"

type client struct {
	cfg     Config
	library sdk.Client
	frame   frame
	history wire.History
}

// New returns a client. Nothing is read from the environment and nothing is
// sent yet.
func New(cfg Config) llm.Client {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithMaxRetries(0), // retries are the loop's
	}
	if key := cfg.VendorKey(); key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return &client{cfg: cfg, library: sdk.NewClient(opts...)}
}

// Stream implements [llm.Client].
func (c *client) Stream(ctx context.Context, req llm.Request, sink func(llm.Delta)) (llm.Response, error) {
	callCtx, call := c.cfg.Begin(ctx)
	defer call.End()
	call.Sent = req.Sent
	frame, err := c.frame.encode(req.System, req.Tools)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, wire.Unsendable(err))
	}
	history, ends, err := c.history.Encode(req.Messages, wire.PlainID, encodeMessage)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, wire.Unsendable(err))
	}
	sender := &exchange{call, frame, marked(req.Messages, history, ends)}
	base := option.WithBaseURL(strings.TrimSuffix(c.cfg.Base(defaultBaseURL, req.Model), "/v1"))
	var opened *http.Response
	err = c.library.Post(callCtx, "v1/messages", encode(req), &opened, option.WithJSONSet("stream", true), option.WithHTTPClient(sender), base)
	stream := ssestream.NewStream[event](ssestream.NewDecoder(opened), err)
	// A stream that failed to open has nothing to close; the error of closing one
	// that was read adds nothing to what reading said.
	defer func() { _ = stream.Close() }()

	answer := answer{sink: sink}
	// The end is what the protocol says, not the end of the connection, which
	// some servers leave open.
	for !answer.complete && stream.Next() {
		event := stream.Current()
		if event.carries() {
			if err := call.Content(event.said()); err != nil {
				return answer.partial(), call.Fail(ctx, err)
			}
		}
		if err := answer.add(event); err != nil {
			return answer.partial(), call.Fail(ctx, wire.Malformed(err))
		}
	}
	if err := stream.Err(); err != nil {
		return answer.partial(), call.Fail(ctx, inStream(call, err))
	}
	if !answer.complete {
		return answer.partial(), call.Fail(ctx, wire.ErrCut)
	}
	return answer.response(), nil
}

// inStream reads the library's error for an "error" event, which looks like a
// refusal with status 200, and for an event that it cannot read.
func inStream(call *wire.Call, err error) error {
	var (
		event  *sdk.Error
		syntax *json.SyntaxError
		typ    *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &event):
		return call.StreamError([]byte(event.RawJSON()))
	case errors.As(err, &syntax), errors.As(err, &typ), errors.Is(err, bufio.ErrTooLong):
		return wire.Malformed(fmt.Errorf("event of the answer: %w", err))
	}
	return err
}

// exchange is what the library sends with. It adds the parts of the request that are
// encoded once for all calls.
type exchange struct {
	call    *wire.Call
	frame   []byte
	history [][]byte
}

// Do implements the library's HTTP client.
func (e *exchange) Do(req *http.Request) (*http.Response, error) {
	if err := wire.Prepend(req, wire.Messages, e.frame, e.history); err != nil {
		return nil, wire.Unsendable(err)
	}
	return e.call.Do(req)
}
