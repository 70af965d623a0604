package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/foreign"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
)

// ServersFolder is where the items of servers lie.
const ServersFolder = "mcp/servers"

// serverItem is the item of a server.
type serverItem struct {
	Version     string       `yaml:"version"`
	ToolType    string       `yaml:"tool_type"`
	Category    string       `yaml:"category"`
	Description string       `yaml:"description"`
	Network     bool         `yaml:"network"`
	Config      serverConfig `yaml:"config"`
}

type serverConfig struct {
	Transport string            `yaml:"transport"`
	Command   string            `yaml:"command,omitempty"`
	Args      []string          `yaml:"args,omitempty"`
	Env       map[string]string `yaml:"env,omitempty"`
	CWD       string            `yaml:"cwd,omitempty"`
	URL       string            `yaml:"url,omitempty"`
	Headers   map[string]string `yaml:"headers,omitempty"`
}

// ServerID is the id of the item of a server with that name.
func ServerID(name string) (string, error) {
	plain := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, name), "-")
	if plain == "" || len(plain) > 64 {
		return "", fmt.Errorf("%q cannot be the name of a server: letters, digits, - and _, at most 64", name)
	}
	return ServersFolder + "/" + plain, nil
}

// ServerItem is the item of a server, or says why it cannot be one. A server may reach
// the network: that is what most are for, and their packages come from there.
func ServerItem(s foreign.Server) ([]byte, error) {
	declared := map[string]any{"transport": s.Type, "command": s.Command, "args": s.Args, "env": s.Env, "cwd": s.Dir, "url": s.URL, "headers": s.Headers}
	checked, err := mcpclient.Declared(s.Name, withoutVariables(declared), nil, "")
	if err != nil {
		return nil, err
	}
	config := serverConfig{Transport: string(checked.Transport)}
	if checked.Transport == mcpclient.HTTP {
		config.URL, config.Headers = s.URL, s.Headers
	} else {
		config.Command, config.Args, config.Env, config.CWD = s.Command, s.Args, s.Env, s.Dir
	}
	return encode(serverItem{
		Version: "1.0.0", ToolType: "mcp_server", Category: ServersFolder,
		Description: "The MCP server " + oneLine(s.Name, 64) + ".", Network: true, Config: config,
	})
}

// withoutVariables is a configuration as it can be checked before its variables are
// known: an address that begins with one is taken for good.
func withoutVariables(config map[string]any) map[string]any {
	config = maps.Clone(config)
	if u, _ := config["url"].(string); strings.HasPrefix(u, "${") {
		config["url"] = "https://variable.invalid"
	}
	return config
}

// Variables are those that the items of servers need.
func Variables(servers []foreign.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Variables...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
