package mcp

import (
	"context"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Tools are the tools of this package for one project.
func Tools(s Source) []tool.Tool {
	return []tool.Tool{
		tool.New(tool.Definition{
			ID:          "rye/mcp/discover",
			Description: "Asks an MCP server for its tools and writes an item for each: new ones, and those that have changed.\nItems are not signed: somebody reads them, then signs them.",
		}, func(ctx context.Context, _ tool.Env, in discoverIn) (any, error) {
			return s.Discover(ctx, in.Server, item.Space(in.Space))
		}),
		tool.New(tool.Definition{
			ID:          "rye/mcp/connect",
			Description: "Connects to an MCP server and lists its tools, with what it says of them. Writes nothing.",
			ReadOnly:    true, Paged: true,
		}, func(ctx context.Context, _ tool.Env, in connectIn) (any, error) { return s.Connect(ctx, in.Server) }),
	}
}

type discoverIn struct {
	Server string `json:"server" jsonschema:"item id of the server, such as mcp/servers/github"`
	Space  string `json:"space,omitempty" jsonschema:"project or user; default: that of the server's item" enum:"project,user"`
}

type connectIn struct {
	Server string `json:"server" jsonschema:"item id of the server, such as mcp/servers/github"`
}

// Offered is what a server offers.
type Offered struct {
	Server string        `json:"server"`
	Space  item.Space    `json:"space"`
	Tools  []OfferedTool `json:"tools" jsonschema:"in the words of the server"`
}

// OfferedTool is a tool of a server, in its own words.
type OfferedTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	ReadOnly    bool   `json:"read_only,omitempty" jsonschema:"the server says that it changes nothing"`
}

// Connect asks a server for its tools.
func (s Source) Connect(ctx context.Context, id string) (*Offered, error) {
	found, server, err := s.server(ctx, id)
	if err != nil {
		return nil, err
	}
	tools, err := s.Connections.Tools(ctx, server)
	if err != nil {
		return nil, mcpclient.Fault(err)
	}
	offered := &Offered{Server: id, Space: found.Space, Tools: make([]OfferedTool, len(tools))}
	for i, t := range tools {
		offered.Tools[i] = OfferedTool{Name: oneLine(t.Name, 128), Description: oneLine(t.Description, maxDescription), ReadOnly: t.Annotations.ReadOnly}
	}
	return offered, nil
}
