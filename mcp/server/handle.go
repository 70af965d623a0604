package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// handle has one request answered by mcp-go, and puts what mcp-go says in Go's
// words about a broken request into the protocol's.
func (s *Server) handle(ctx context.Context, msg message) (any, *rpcError) {
	if msg.method == mcp.MethodToolsCall {
		if err := s.checkToolName(msg.tool); err != nil {
			return nil, err
		}
		if r := requestFrom(ctx); r != nil && mcp.IsModernProtocol(msg.protocol) {
			if err := r.resume(&s.pending); err != nil {
				return nil, err
			}
		}
	}
	if answer, refusal, mine := s.answerOwn(ctx, msg); mine {
		return answer, refusal
	}
	switch answer := s.mcp.HandleMessage(ctx, msg.raw).(type) {
	case mcp.JSONRPCResponse:
		if task := s.created(ctx); task != nil {
			return task, nil
		}
		return s.adapt(answer.Result), nil
	case mcp.JSONRPCError:
		if answer.Error.Code == mcp.INVALID_REQUEST {
			// The message itself was checked before, so its params do not decode.
			return nil, invalidParams("the params of %s do not have the form the protocol gives them, or hold a number beyond 64-bit floating point", msg.method)
		}
		return nil, &rpcError{Code: answer.Error.Code, Message: answer.Error.Message, Data: answer.Error.Data}
	default:
		return nil, internalError("%s has no answer", msg.method)
	}
}

// plainResult is written as JSON member by member. mcp-go's own way makes a map
// first, and reads again what was JSON already.
type plainResult mcp.CallToolResult

func plain(result *mcp.CallToolResult) *plainResult {
	if result.Content == nil {
		result.Content = []mcp.Content{} // the protocol wants a list, even in a result that only asks
	}
	return (*plainResult)(result)
}

// checkToolName refuses a call of a tool that does not exist, and says which do.
func (s *Server) checkToolName(name string) *rpcError {
	if name == "" {
		return invalidParams("tools/call needs params with the name of a tool")
	}
	if s.mcp.GetTool(name) != nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(s.mcp.ListTools()))
	return invalidParams("there is no tool %q; the tools are: %s", item.Clip(name, 100), strings.Join(names, ", "))
}
