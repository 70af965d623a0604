// Package web is the tools rye/web/fetch and rye/web/search.
//
// Their results were written by strangers. They stand in an element that they cannot
// end, without characters that a person does not see or a terminal obeys, and in
// pages of bounded size. Addresses are checked when a connection is made, by what it
// really connects to: neither a name that changes its address nor a redirect leads
// to this machine or a private network.
package web

import (
	"net"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Deps is what the tools need.
type Deps struct {
	// Settings are the user's, as they hold for a call.
	Settings func() (config.Web, error)
	Getenv   func(string) string
	Resolver *net.Resolver // nil: that of the system
}

// Tools returns the tools of the package.
func Tools(deps Deps) []tool.Tool {
	return []tool.Tool{fetchTool(&fetcher{deps: deps}), searchTool(&searcher{deps: deps})}
}
