package server

import (
	_ "embed" // the icons
	"encoding/base64"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// serverName is what clients know the server by; they put it before names of tools.
const serverName = "rye"

// Texts that people see of the server in clients.
const (
	serverTitle       = "Rye"
	serverDescription = "Runs directives as threads: whole conversations of models with budgets, permissions and transcripts."
	serverWebsite     = "https://github.com/rye-mcp/rye-mcp"
)

// The icon: an ear of rye, as a drawing for any size and as 48 pixels for clients that
// show no SVG.
var (
	//go:embed icon.svg
	iconSVG []byte
	//go:embed icon.png
	iconPNG []byte
)

// about describes the server to clients: in the answers to initialize and
// server/discover, and nowhere else.
func about(s *mcpserver.MCPServer) {
	mcpserver.WithTitle(serverTitle)(s)
	mcpserver.WithDescription(serverDescription)(s)
	mcpserver.WithWebsiteURL(serverWebsite)(s)
	mcpserver.WithIcons(
		mcp.Icon{Src: dataURI("image/png", iconPNG), MIMEType: "image/png", Sizes: []string{"48x48"}},
		mcp.Icon{Src: dataURI("image/svg+xml", iconSVG), MIMEType: "image/svg+xml", Sizes: []string{"any"}},
	)(s)
}

func dataURI(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// shortInfo is what all other results of revision 2026-07-28 say about the server.
func (s *Server) shortInfo() mcp.Implementation {
	return mcp.Implementation{Name: serverName, Version: s.version}
}
