package server

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// maxCompletions is how many values one answer may propose: MCP, "completion".
const maxCompletions = 100

// Completing is an argument that a user is typing.
type Completing struct {
	Argument string
	Value    string            // what was typed so far
	Others   map[string]string // arguments that have a value already
}

// offerCompletion has the server propose values for arguments of prompts and of
// templates of resources.
func (s *Server) offerCompletion() {
	mcpserver.WithCompletions()(s.mcp)
	Handle(s, mcp.MethodCompletionComplete, Always, func(ctx context.Context, call Call, params mcp.CompleteParams) (mcp.ResultMetadata, error) {
		proposed, err := s.complete(ctx, call, params)
		if err != nil {
			return nil, err
		}
		if len(proposed.Values) > maxCompletions {
			proposed.Total, proposed.HasMore = max(proposed.Total, len(proposed.Values)), true
			proposed.Values = proposed.Values[:maxCompletions]
		}
		if proposed.Values == nil {
			proposed.Values = []string{}
		}
		return &mcp.CompleteResult{Completion: proposed}, nil
	})
}

// complete asks those whose argument it is. A server without prompts or resources has
// nothing to propose for them.
func (s *Server) complete(ctx context.Context, call Call, params mcp.CompleteParams) (mcp.Completion, error) {
	c := Completing{Argument: params.Argument.Name, Value: params.Argument.Value, Others: params.Context.Arguments}
	switch ref := params.Ref.(type) {
	case mcp.PromptReference:
		if s.prompts != nil {
			return s.prompts.Complete(ctx, call, ref.Name, c)
		}
	case mcp.ResourceReference:
		if s.resources != nil {
			return s.resources.Complete(ctx, call, ref.URI, c)
		}
	}
	return mcp.Completion{}, nil
}
