package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// handle has one request answered by mcp-go, and puts what mcp-go says in Go's
// words about a broken request into the protocol's.
func (s *Server) handle(ctx context.Context, msg message) (any, *rpcError) {
	if msg.method == mcp.MethodToolsCall {
		if err := s.checkToolName(ctx, msg); err != nil {
			return nil, err
		}
		if r := requestFrom(ctx); r != nil && mcp.IsModernProtocol(msg.protocol) {
			if err := r.resume(&s.pending); err != nil {
				return nil, err
			}
		}
	}
	if msg.method == mcp.MethodToolsList {
		if err := refuseCursor(msg); err != nil {
			return nil, err
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

// refuseCursor refuses a cursor of the list of tools, which never has a second page, so
// that the server has given out none.
func refuseCursor(msg message) *rpcError {
	var params page
	if json.Unmarshal(msg.params, &params) == nil && params.Cursor != "" {
		return invalidParams("%.40q is not a cursor of %s, which has one page: leave cursor out", params.Cursor, msg.method)
	}
	return nil
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

// checkToolName refuses a call of a tool that does not exist. It names those that the
// client is offered, what is meant most likely first, or the call that does the same.
func (s *Server) checkToolName(ctx context.Context, msg message) *rpcError {
	name := msg.tool
	if name == "" {
		return invalidParams("tools/call needs params with the name of a tool")
	}
	if s.mcp.GetTool(name) != nil {
		return nil
	}
	if slices.Contains(s.elsewhere.Names, name) {
		return invalidParams("%s has no tool of its own here; call %s", name, s.elsewhere.Call(name, argumentsOf(msg)))
	}
	shows := showsApps(ctx)
	var names []string
	for _, t := range s.mcp.ListTools() {
		if shows || !ofApp(t.Tool) {
			names = append(names, t.Tool.Name)
		}
	}
	slices.Sort(names)
	meant := ""
	if near := tool.Nearest(name, names); near != "" {
		names = append([]string{near}, slices.DeleteFunc(names, func(n string) bool { return n == near })...)
		meant = fmt.Sprintf("; did you mean %s?", near)
	}
	return invalidParams("there is no tool %q%s; the tools are: %s", item.Clip(name, 100), meant, strings.Join(names, ", "))
}
