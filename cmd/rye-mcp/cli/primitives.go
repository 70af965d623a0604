package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/builtin/mcp"
	"github.com/rye-mcp/rye-mcp/tools/confine"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/executor/httpclient"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
	"github.com/rye-mcp/rye-mcp/tools/executor/reach"
	"github.com/rye-mcp/rye-mcp/tools/executor/subprocess"
	"github.com/rye-mcp/rye-mcp/tools/netguard"
)

// bound sets what the commands of tools may reach.
func (p *project) bound(sys System, roots resolve.Roots) error {
	executable, err := sys.Executable()
	if err != nil {
		return fmt.Errorf("find this program's own file: %w", err)
	}
	home, err := sys.HomeDir()
	if err != nil {
		home = ""
	}
	cache := ""
	if dir, err := search.CacheDir(sys.Getenv); err == nil {
		cache = filepath.Join(dir, "tools")
	}
	p.reach = &reach.Reach{
		Confiner: &confine.Confiner{Self: executable}, Project: roots.Project, User: roots.User, Home: home, Temp: os.TempDir(), Cache: cache, Scratch: scratchFolder(sys),
		Settings: func() (reach.Settings, error) {
			set, err := p.toolSettings()
			e := set.Execution
			return reach.Settings{Mode: confine.Mode(e.Confine), Writable: e.Writable, ShellNetwork: e.ShellNetwork}, err
		},
	}
	p.mcp = mcpclient.Primitive{Connections: mcpclient.New(version()), Confine: p.reach.Plan}
	return nil
}

// scratchFolder is where this program keeps for a moment what no tool may change; empty where there is no cache.
func scratchFolder(sys System) string {
	dir, err := search.CacheDir(sys.Getenv)
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "scratch")
}

// primitives run the tools of items.
func (p *project) primitives() map[string]chain.Primitive {
	return map[string]chain.Primitive{
		chain.Subprocess: &subprocess.Primitive{Confine: p.reach.Plan},
		chain.HTTPClient: httpclient.New(http.DefaultTransport, netguard.Late(func() (netguard.Settings, error) {
			set, err := p.toolSettings()
			return netguard.Settings{AllowHosts: set.Web.AllowHosts, UseProxy: set.Web.UseProxy}, err
		}, nil)),
		chain.MCP: p.mcp,
	}
}

// servers are where tools of other MCP servers are found.
func (p *project) servers(sys System) mcp.Source { return newServers(p, p.mcp, sys.Now) }
