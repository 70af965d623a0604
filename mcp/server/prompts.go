package server

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Prompts are the texts that the user of a client can choose, such as its slash
// commands. Which there are depends on the call: on the project of its client. An
// error is a *tool.Fault, or becomes one.
type Prompts interface {
	// List returns all prompts, in the order in which clients show them.
	List(ctx context.Context, call Call) ([]mcp.Prompt, error)
	// Get returns a prompt with arguments filled in. They are text in the protocol;
	// a value that a client sends of another type is its JSON.
	Get(ctx context.Context, call Call, name string, args map[string]string) (*mcp.GetPromptResult, error)
	// Complete proposes values for an argument of a prompt.
	Complete(ctx context.Context, call Call, name string, c Completing) (mcp.Completion, error)
	// Watch calls changed after the list may have changed, until stop is called. It
	// watches what the list depends on in the project of the call, and outlives the call.
	Watch(ctx context.Context, call Call, changed func()) (stop func(), err error)
}

// OfferPrompts has the server offer prompts. It is called before the first client
// comes.
func (s *Server) OfferPrompts(p Prompts) {
	mcpserver.WithPromptCapabilities(true)(s.mcp)
	s.offerCompletion()
	s.prompts = p
	Handle(s, mcp.MethodPromptsList, Always, func(ctx context.Context, call Call, params page) (mcp.ResultMetadata, error) {
		if params.Cursor != "" {
			return nil, tool.Faultf(tool.CodeBadArguments, "%s has one page: leave cursor out", mcp.MethodPromptsList)
		}
		prompts, err := p.List(ctx, call)
		if err != nil {
			return nil, err
		}
		s.watchForSession(ctx, mcp.MethodNotificationPromptsListChanged, func(changed func()) (func(), error) { return p.Watch(ctx, call, changed) })
		return &mcp.ListPromptsResult{Prompts: append([]mcp.Prompt{}, prompts...)}, nil
	})
	Handle(s, mcp.MethodPromptsGet, Always, func(ctx context.Context, call Call, params promptParams) (mcp.ResultMetadata, error) {
		result, err := p.Get(ctx, call, params.Name, params.texts())
		if err != nil {
			return nil, err
		}
		return result, nil
	})
}

// page are the params of lists.
type page struct {
	Cursor string `json:"cursor"`
}

// promptParams are the params of prompts/get.
type promptParams struct {
	Name      string                     `json:"name"`
	Arguments map[string]json.RawMessage `json:"arguments"`
}

// texts are the arguments as text. One that is null was not given.
func (p promptParams) texts() map[string]string {
	args := make(map[string]string, len(p.Arguments))
	for name, raw := range p.Arguments {
		var text string
		switch {
		case isNull(raw):
			continue
		case json.Unmarshal(raw, &text) != nil:
			text = string(raw)
		}
		args[name] = text
	}
	return args
}
