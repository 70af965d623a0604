package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// maxResult is the longest result in bytes of JSON. Of more, the strictest
	// client shows its model the first 8 000 and last 32 000 characters, and
	// others put it in a file.
	maxResult = 40_000
	// maxKeptMember and maxKept bound what is saved of a longer result.
	maxKeptMember = 1_000
	maxKept       = 10_000
	// maxFaultText bounds the texts of a failure that is too long.
	maxFaultText = 4_000
)

// outputCheck says what does not fit the output schema of a tool.
type outputCheck func(data json.RawMessage) error

// success is the result of a call that worked. Models see either the structured
// content or the text, depending on the client, so both carry all of it.
func (s *Server) success(ctx context.Context, name string, fits outputCheck, out any) *mcp.CallToolResult {
	data, err := encode(out)
	if err != nil {
		s.logOf(ctx).Error().Err(err).Str("tool", name).Msg("result cannot be written as JSON")
		return s.failure(ctx, name, fits, tool.Faultf(tool.CodeInternal,
			"%s was carried out, but its result cannot be written as JSON", name))
	}
	data = bytes.TrimSpace(data)
	if len(data) > maxResult {
		s.logOf(ctx).Error().Str("tool", name).Int("bytes", len(data)).Int("most", maxResult).Msg("result is too long: its handler must page or trim it")
		return s.failure(ctx, name, fits, tooLong(name, data))
	}
	result := toolResult(data, false)
	result.Content = append(result.Content, images(out)...)
	return result
}

// images are what a result shows, in the protocol's form. A client passes them on
// or not; what the result says about them is in its text.
func images(out any) []mcp.Content {
	var all []mcp.Content
	for _, a := range tool.AttachmentsOf(out) {
		if a.IsImage() {
			all = append(all, mcp.NewImageContent(base64.StdEncoding.EncodeToString(a.Data), a.MediaType))
		}
	}
	return all
}

// failure is the result of a call that did not work: the one place where
// errors of handlers turn into what a model reads.
func (s *Server) failure(ctx context.Context, name string, fits outputCheck, err error) *mcp.CallToolResult {
	fault := s.faultOf(ctx, name, err)
	if r := requestFrom(ctx); r != nil {
		r.failed(string(fault.Code))
	}
	return toolResult(encodeFault(fits, fault), true)
}

func toolResult(data []byte, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(string(data))},
		StructuredContent: json.RawMessage(data),
		IsError:           isError,
	}
}

// faultOf maps an error of a handler.
func (s *Server) faultOf(ctx context.Context, name string, err error) *tool.Fault {
	if panicked, ok := errors.AsType[*tool.PanicError](err); ok {
		s.logOf(ctx).Error().Any("panic", panicked.Value).Bytes("stack", panicked.Stack).Str("tool", name).Msg("tool panicked")
		return tool.Faultf(tool.CodeInternal, "%s failed inside rye-mcp; its log has the details", name)
	}
	if fault, ok := errors.AsType[*tool.Fault](err); ok && fault != nil {
		return fault
	}
	if s.mapError != nil {
		if fault := s.mapError(err); fault != nil {
			return fault
		}
	}
	if errors.Is(err, ErrRequestCancelled) || errors.Is(err, ErrClientGone) {
		return tool.Faultf(tool.CodeCancelled, "%w", err)
	}
	if errors.Is(err, ErrNoElicitation) {
		return tool.Faultf(tool.CodeUnsupported, "%w", err)
	}
	if errors.Is(err, ErrBadAnswer) {
		return tool.Faultf(tool.CodeToolFailed, "%w", err)
	}
	fault := tool.AsFault(err)
	if fault.Code == tool.CodeInternal {
		s.logOf(ctx).Error().Err(err).Str("tool", name).Msg("tool failed with an error that has no code")
	}
	return fault
}

// encodeFault writes the failure object of f so that it fits the tool's output
// schema and the size of a result.
func encodeFault(fits outputCheck, f *tool.Fault) []byte {
	data, err := encode(f.Body())
	if err == nil && fits(data) != nil {
		// A detail has the name of a member of the result, but another type.
		nested := *f
		nested.Details = map[string]any{"details": f.Details}
		data, err = encode(nested.Body())
	}
	if err != nil || len(data) > maxResult {
		short := tool.Fault{Code: f.Code, Message: clip(f.Message, maxFaultText), Hint: clip(f.Hint, maxFaultText)}
		// Two strings and a code always encode.
		data, _ = encode(short.Body())
	}
	return bytes.TrimSpace(data)
}

// tooLong stands in for a result that no client would pass on whole. The call
// was carried out, so its short members, such as ids, costs and cursors, are
// kept.
func tooLong(name string, data []byte) *tool.Fault {
	fault := tool.Faultf(tool.CodeInternal,
		"%s was carried out, but its result has %d bytes and at most %d can be shown", name, len(data), maxResult).
		WithHint("Ask for less, with limit, offset or cursor where the tool has them. Do not repeat a call that changes something: partial_result has the short members of its result.")
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return fault
	}
	kept, omitted := make(map[string]json.RawMessage), make(map[string]int)
	total := 0
	for _, member := range slices.Sorted(maps.Keys(members)) {
		value := members[member]
		if len(value) > maxKeptMember || total+len(value) > maxKept {
			omitted[member] = len(value)
			continue
		}
		total += len(value)
		kept[member] = value
	}
	return fault.With("partial_result", kept).With("omitted_bytes", omitted)
}
