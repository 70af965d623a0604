// Command rye-mcp is an MCP server with a thread runtime behind it. See the
// README for how to use it and package cli for its commands.
package main

import (
	"os"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/cli"
	_ "github.com/rye-mcp/rye-mcp/cmd/rye-mcp/confined" // becomes the command of a tool, where it is one
	_ "github.com/rye-mcp/rye-mcp/cmd/rye-mcp/gc"       // sets GOGC first
)

func main() {
	os.Exit(cli.Main(cli.OS(), os.Args[1:]))
}
