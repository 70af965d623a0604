// Package openai speaks the two protocols of OpenAI through the go-openai library:
// Chat Completions ([New]), which many providers offer, and Responses
// ([NewResponses]), which newer models of OpenAI need to think and to call tools.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// Config is how to reach the provider. The base URL stands before
// "/chat/completions" or "/responses" and usually ends in "/v1".
type Config = wire.Config

// defaultBaseURL is OpenAI's own.
const defaultBaseURL = "https://api.openai.com/v1"

type client struct {
	cfg     Config
	history wire.History
}

// New returns a client that speaks Chat Completions. Nothing is sent yet.
func New(cfg Config) llm.Client { return &client{cfg: cfg} }

// Stream implements [llm.Client].
func (c *client) Stream(ctx context.Context, req llm.Request, sink func(llm.Delta)) (llm.Response, error) {
	callCtx, call := c.cfg.Begin(ctx)
	defer call.End()
	call.Sent = req.Sent
	base := c.cfg.Base(defaultBaseURL, req.Model)
	params, err := encode(req, base)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, wire.Unsendable(err))
	}
	system, err := encodeSystem(req.System)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, wire.Unsendable(err))
	}
	encodeFit := encodeMessage
	if wantsSignatures(req.Model, base) {
		encodeFit = func(m llm.Message) ([]byte, error) { return encodeMessage(signedCalls(m)) }
	}
	history, _, err := c.history.Encode(req.Messages, takenIDs(req, base), encodeFit)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, wire.Unsendable(err))
	}
	library := library(c.cfg, base, &exchange{call: call, fill: func(r *http.Request) error {
		return wire.Prepend(r, wire.Messages, caching(req, base), [][]byte{system}, [][]byte{history})
	}})
	stream, err := library.CreateChatCompletionStream(callCtx, params)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, unsendable(err))
	}
	// The error of closing what was read adds nothing to what reading said.
	defer func() { _ = stream.Close() }()

	answer := answer{sink: sink}
	for {
		raw, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = answer.add(call, raw)
		}
		if err == nil {
			continue
		}
		failure := call.Fail(ctx, inStream(call, err))
		if answer.stop != "" && onlyConnection(failure) {
			break
		}
		return answer.partial(), failure
	}
	if answer.stop == "" {
		return answer.partial(), call.Fail(ctx, wire.ErrCut)
	}
	return answer.response(), nil
}

// onlyConnection reports whether a failure says nothing of the answer: one that the model
// has finished is whole and paid, and another would be paid again.
func onlyConnection(failure error) bool {
	api, ok := errors.AsType[*llm.APIError](failure)
	return ok && (api.Type == wire.TypeConnection || api.Type == wire.TypeStalled)
}

func library(to Config, base string, doer sdk.HTTPDoer) *sdk.Client {
	cfg := sdk.DefaultConfig(to.VendorKey())
	cfg.BaseURL = base
	cfg.HTTPClient = doer
	// Gateways send a comment every few seconds while a model thinks. The stall
	// timeout is the limit here, not a number of lines.
	cfg.EmptyMessagesLimit = math.MaxUint
	return sdk.NewClientWithConfig(cfg)
}

// unsendable tells the library's refusals to send a request from failures of
// the exchange, which carry an *llm.APIError or come from the connection.
func unsendable(err error) error {
	for _, refusal := range []error{
		sdk.ErrReasoningToolsRequireResponses, sdk.ErrReasoningEffortUnsupported,
		sdk.ErrReasoningModelMaxTokensDeprecated, sdk.ErrChatCompletionInvalidModel,
	} {
		if errors.Is(err, refusal) {
			return wire.Unsendable(err)
		}
	}
	return err
}

// inStream translates the library's error for an error event.
func inStream(call *wire.Call, err error) error {
	var event *sdk.APIError
	if !errors.As(err, &event) {
		return err
	}
	raw, encodeErr := json.Marshal(sdk.ErrorResponse{Error: event})
	if encodeErr != nil {
		return wire.Malformed(err)
	}
	return call.StreamError(raw)
}

// exchange is what the library sends with. On the way out it adds what the
// library's types have no field for; on the way in it leaves out the lines of
// the event stream that the library takes for a part of an error.
type exchange struct {
	call *wire.Call
	fill func(*http.Request) error
}

// Do implements the library's HTTPDoer.
func (e *exchange) Do(req *http.Request) (*http.Response, error) {
	if err := e.fill(req); err != nil {
		return nil, wire.Unsendable(err)
	}
	resp, err := e.call.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body = onlyData(resp.Body)
	return resp, nil
}
