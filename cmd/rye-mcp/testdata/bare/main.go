// Command bare is the least that an MCP server written with mcp-go can be: one
// tool that answers with what it was given. Benchmarks compare rye-mcp with it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	s := server.NewMCPServer("bare", "1")
	echo := mcp.NewTool("echo", mcp.WithDescription("Says it again."), mcp.WithString("text", mcp.Required()))
	s.AddTool(echo, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(req.GetString("text", "")), nil
	})
	if err := server.ServeStdio(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
