package server

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// traceKey is the context key of a request's trace id.
type traceKey struct{}

// trace gives a request the id that its lines in the log share: the span of the client
// that it belongs to, where the client names one.
func (s *Server) trace(ctx context.Context, traceparent string) context.Context {
	if traceparent != "" {
		return context.WithValue(ctx, traceKey{}, traceparent)
	}
	if s.newTrace == nil {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, s.newTrace())
}

// TraceFrom returns the trace id of the request that ctx belongs to, or "".
func TraceFrom(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

// logOf is the log with the trace id of a request.
func (s *Server) logOf(ctx context.Context) *zerolog.Logger {
	id := TraceFrom(ctx)
	if id == "" {
		return &s.log
	}
	log := s.log.With().Str("trace_id", id).Logger()
	return &log
}

// logRequest writes the one line about a request that was served: calls of
// tools at level info, the rest at debug. A client that asked for it is told too.
func (s *Server) logRequest(ctx context.Context, r *request, failure *rpcError, took time.Duration) {
	outcome := r.outcomeOf(ctx, failure)
	r.tellOutcome(outcome, took)
	log := s.logOf(ctx)
	line := log.Debug()
	if r.msg.method == mcp.MethodToolsCall {
		line = log.Info()
	}
	if !line.Enabled() {
		return
	}
	if r.msg.method == mcp.MethodToolsCall {
		line.Str("tool", item.Clip(r.msg.tool, 100))
	}
	line.Str("session", r.conn.session.id).
		Str("method", item.Clip(string(r.msg.method), 100)).
		Dur("duration", took).
		Str("outcome", outcome).
		Msg("request")
}

// outcomeOf is ok, cancelled, error for a protocol error, or the code of a
// failed call.
func (r *request) outcomeOf(ctx context.Context, failure *rpcError) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(context.Cause(ctx), ErrRequestCancelled):
		return "cancelled"
	case failure != nil:
		return "error"
	case r.outcome != "":
		return r.outcome
	}
	return "ok"
}

// failed notes for the log what a tool call failed with.
func (r *request) failed(code string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome = code
}

func (s *Server) logRefusal(id requestID, e *rpcError) {
	s.log.Debug().Str("id", item.Clip(id.String(), 100)).Int("code", e.Code).Str("reason", e.Message).Msg("request refused")
}
