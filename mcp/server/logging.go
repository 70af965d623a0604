package server

import (
	"context"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// offerLogging has clients that keep a session told what their requests came to, from
// the level on that they ask for; without a level, nothing. Revision 2026-07-28
// deprecates this, and no client of it is told that it is there.
func (s *Server) offerLogging() {
	mcpserver.WithLogging()(s.mcp)
	Handle(s, mcp.MethodSetLogLevel, Legacy, func(ctx context.Context, _ Call, params mcp.SetLevelParams) (mcp.ResultMetadata, error) {
		if !mcp.LoggingLevelEmergency.ShouldSendTo(params.Level) {
			return nil, tool.Faultf(tool.CodeBadArguments,
				"there is no level %q; valid are debug, info, notice, warning, error, critical, alert, emergency", item.Clip(string(params.Level), 100))
		}
		requestFrom(ctx).conn.session.setLogLevel(params.Level)
		return nil, nil //nolint:nilnil // the answer is empty
	})
}

func (s *session) setLogLevel(level mcp.LoggingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logLevel = level
}

func (s *session) wantsLog(level mcp.LoggingLevel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logLevel != "" && level.ShouldSendTo(s.logLevel)
}

// tellOutcome tells the client of a request what that came to: calls of tools at level
// info, the rest at debug, what failed at warning.
func (r *request) tellOutcome(outcome string, took time.Duration) {
	level := mcp.LoggingLevelDebug
	switch {
	case outcome != "ok" && outcome != "cancelled":
		level = mcp.LoggingLevelWarning
	case r.msg.method == mcp.MethodToolsCall:
		level = mcp.LoggingLevelInfo
	}
	if !r.conn.session.wantsLog(level) {
		return
	}
	r.conn.session.send(encodeMessage("", mcp.MethodNotificationMessage, logParams{
		Level: level, Logger: serverName,
		Data: logData{
			Method: item.Clip(string(r.msg.method), 100), Tool: item.Clip(r.msg.tool, 100), Outcome: outcome, DurationMS: took.Milliseconds(),
		},
	}))
}

type logParams struct {
	Level  mcp.LoggingLevel `json:"level"`
	Logger string           `json:"logger"`
	Data   logData          `json:"data"`
}

type logData struct {
	Method     string `json:"method"`
	Tool       string `json:"tool,omitempty"`
	Outcome    string `json:"outcome"` // ok, cancelled, error, or the code of a failed call
	DurationMS int64  `json:"duration_ms"`
}
