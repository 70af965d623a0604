package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// Bounds of what a server may offer. The largest public ones have about a hundred
// tools.
const (
	maxTools = 1000
	maxPages = 100
)

var (
	errTooManyTools = fmt.Errorf("it offers more than %d tools", maxTools)
	errTooManyPages = fmt.Errorf("its list of tools has more than %d pages", maxPages)
)

// Tool is a tool that a server offers. All of it is the server's word.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"inputSchema"`
	Annotations struct {
		ReadOnly bool `json:"readOnlyHint"`
	} `json:"annotations"`
}

// Tools are those that a server offers.
func (c *Connections) Tools(ctx context.Context, s Server) ([]Tool, error) {
	var tools []Tool
	err := c.use(ctx, s, "list tools", func(ctx context.Context, conn *connection) error {
		tools = nil
		var request mcp.ListToolsRequest
		for range maxPages {
			page, next, err := conn.page(ctx, request)
			if err != nil {
				return err
			}
			if tools = append(tools, page...); len(tools) > maxTools {
				return errTooManyTools
			}
			if next == "" {
				return nil
			}
			request.Params.Cursor = next
		}
		return errTooManyPages
	})
	return tools, err
}

func (c *connection) page(ctx context.Context, request mcp.ListToolsRequest) ([]Tool, mcp.Cursor, error) {
	var said json.RawMessage
	answer, err := c.ListToolsByPage(hearing(ctx, &said), request)
	if err != nil {
		return nil, "", err
	}
	var page struct{ Tools []Tool }
	if err := json.Unmarshal(said, &page); err != nil {
		return nil, "", fmt.Errorf("its list of tools: %w", err)
	}
	return page.Tools, answer.NextCursor, nil
}
