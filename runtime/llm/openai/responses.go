package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// responses is a client that speaks Responses. Nothing is stored at the provider: each
// request carries the whole conversation, with what the model has thought encrypted.
type responses struct {
	cfg     Config
	history wire.History
}

// NewResponses returns a client that speaks Responses. Nothing is sent yet.
func NewResponses(cfg Config) llm.Client { return &responses{cfg: cfg} }

// WantsResponses reports whether a model of OpenAI's own is asked over Responses: over
// Chat Completions it forgets what it has thought with each tool call, and from GPT-5.4
// on calls none while it thinks. Source: "Migrate to the Responses API" and the pages of
// the models in OpenAI's documentation.
func WantsResponses(model string) bool {
	model = strings.ToLower(model)
	for _, other := range []string{"-chat", "-search", "-audio", "-realtime"} {
		if strings.Contains(model, other) {
			return false
		}
	}
	if len(model) > 1 && model[0] == 'o' && isDigit(model[1]) || strings.Contains(model, "codex") {
		return true
	}
	generation, isGPT := strings.CutPrefix(model, "gpt-")
	return isGPT && generation != "" && isDigit(generation[0]) &&
		(generation[0] >= '5' || len(generation) > 1 && isDigit(generation[1]))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Stream implements [llm.Client].
func (c *responses) Stream(ctx context.Context, req llm.Request, sink func(llm.Delta)) (llm.Response, error) {
	callCtx, call := c.cfg.Begin(ctx)
	defer call.End()
	call.Sent = req.Sent
	params, err := encodeResponse(req)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, wire.Unsendable(err))
	}
	history, _, err := c.history.Encode(req.Messages, func(id string) bool { return len(id) <= maxResponseID }, encodeItems)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, wire.Unsendable(err))
	}
	library := library(c.cfg, c.cfg.Base(defaultBaseURL, req.Model), &exchange{call: call, fill: func(r *http.Request) error {
		return wire.Prepend(r, wire.Input, nil, [][]byte{history})
	}})
	stream, err := library.CreateResponseStream(callCtx, params)
	if err != nil {
		return llm.Response{}, call.Fail(ctx, err)
	}
	// The error of closing what was read adds nothing to what reading said.
	defer func() { _ = stream.Close() }()

	answer := responseAnswer{sink: sink}
	// The end is what the protocol says, not the end of the connection.
	for !answer.complete {
		raw, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) {
			return answer.partial(), call.Fail(ctx, wire.ErrCut)
		}
		if err == nil {
			err = answer.add(call, raw)
		}
		if err != nil {
			return answer.partial(), call.Fail(ctx, inStream(call, err))
		}
	}
	return answer.response(), nil
}
