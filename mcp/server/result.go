package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/tools/picture"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// outputCheck says what does not fit the output schema of a tool.
type outputCheck func(data json.RawMessage) error

// success is the result of a call that worked; the operation that it tells of may have failed. Models see
// either the structured content or the text, depending on the client, so both carry the same.
func (s *Server) success(ctx context.Context, name string, fits outputCheck, out any) *mcp.CallToolResult {
	data, err := encode(out)
	if err != nil {
		s.logOf(ctx).Error().Err(err).Str("tool", name).Msg("result cannot be written as JSON")
		return s.failure(ctx, name, fits, tool.Faultf(tool.CodeInternal,
			"%s was carried out, but its result cannot be written as JSON", name))
	}
	pictures, others := sortAttachments(tool.AttachmentsOf(out))
	result := toolResult(s.shaped(ctx, data, out, others), tool.Failed(out))
	result.Content = append(result.Content, pictures...)
	return result
}

// shaped is an answer as it is sent: without what was told before, and in the
// room that the call gives it.
func (s *Server) shaped(ctx context.Context, data []byte, result any, beside []attachment) []byte {
	a := answeringFrom(ctx)
	data = s.withReach(withNews(ctx, a, s.notices.tell(a.notices, bytes.TrimSpace(data)), result))
	f := fitter{room: a.room, result: result, kept: &s.kept, calls: s.calls()}
	return f.fit(withAttachments(data, s.readable(beside)))
}

// newsMember has what became of the client's threads since it was told last.
const newsMember = "ended_since"

// withNews adds what the client is told beside the answer. One that does not wait for it
// any more is told by the next.
func withNews(ctx context.Context, a *answering, data []byte, result any) []byte {
	if a.news == nil || ctx.Err() != nil {
		return data
	}
	news := a.news(ctx, result)
	if news == nil {
		return data
	}
	top, err := parseTree(data)
	if err != nil || top.open != '{' {
		return data
	}
	member, err := nodeOf(news)
	if err != nil {
		return data
	}
	top.insert(1, newsMember, member)
	return top.JSON()
}

// attachment is what an answer says of what a tool returned beside its result.
type attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
	NotShown  string `json:"not_shown,omitempty"` // why an image is not content of its own
	Read      string `json:"read,omitempty"`      // the call that reads all of it

	data []byte
}

// readable says of attachments that are text how they are read.
func (s *Server) readable(all []attachment) []attachment {
	for i, a := range all {
		if utf8.Valid(a.data) {
			all[i].Read = s.calls().kept(s.kept.put(string(a.data)), 0)
		}
	}
	return all
}

// withAttachments adds what a tool returned beside its result, such as the whole of
// an output of which the result has an excerpt. Images are content of their own.
func withAttachments(data []byte, all []attachment) []byte {
	if len(all) == 0 {
		return data
	}
	top, err := parseTree(data)
	if err != nil || top.open != '{' {
		return data
	}
	list, err := nodeOf(all)
	if err != nil {
		return data
	}
	top.insert(1, "attachments", list)
	return top.JSON()
}

// sortAttachments tells what a result shows, in the protocol's form, from what is only named. A
// client passes pictures on or not; the text of the result tells about them. An
// image that providers refuse would end the conversation of the client's model.
func sortAttachments(attachments []tool.Attachment) (pictures []mcp.Content, others []attachment) {
	for _, a := range attachments {
		p, err := picture.Info{MediaType: a.MediaType}, error(nil)
		if !a.Picture {
			p, err = picture.Check(a.Data)
		}
		if err == nil {
			pictures = append(pictures, mcp.NewImageContent(base64.StdEncoding.EncodeToString(a.Data), p.MediaType))
			continue
		}
		said := attachment{Name: a.Name, MediaType: a.MediaType, Bytes: len(a.Data), data: a.Data}
		if unfit, is := errors.AsType[*picture.UnfitError](err); is {
			said.NotShown = unfit.Error()
		}
		others = append(others, said)
	}
	return pictures, others
}

// failure is the result of a call that did not work: the one place where
// errors of handlers turn into what a model reads.
func (s *Server) failure(ctx context.Context, name string, fits outputCheck, err error) *mcp.CallToolResult {
	fault := s.faultOf(ctx, name, err)
	if r := requestFrom(ctx); r != nil {
		r.failed(string(fault.Code))
	}
	return toolResult(s.shaped(ctx, encodeFault(fits, fault), nil, nil), true)
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
// schema.
func encodeFault(fits outputCheck, f *tool.Fault) []byte {
	data, err := encode(f.Body())
	if err == nil && fits(data) != nil {
		// A detail has the name of a member of the result, but another type.
		nested := *f
		nested.Details = map[string]any{"details": f.Details}
		data, err = encode(nested.Body())
	}
	if err != nil {
		short := tool.Fault{Code: f.Code, Message: f.Message, Hint: f.Hint}
		// Two strings and a code always encode.
		data, _ = encode(short.Body())
	}
	return bytes.TrimSpace(data)
}
