package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/jsonc"
)

// maxConfig is how many bytes of a configuration are read; Claude Code's own file,
// which holds much else, has some MiB.
const maxConfig = 32 << 20

// Server is an MCP server as another program is configured with it, in the words of
// an mcp_server item: ${NAME} stands for a variable of the environment.
type Server struct {
	Name    string
	Type    string // stdio, http or sse; empty: as the rest says
	Command string
	Args    []string
	Env     map[string]string
	Dir     string
	URL     string
	Headers map[string]string

	// Variables are those that the server needs and that have to be set: their values
	// were secrets, or were asked for by the other program.
	Variables []string
	// Notes say what could not be taken over.
	Notes []string
}

// ErrNoServers says that a configuration names no MCP servers.
var ErrNoServers = errors.New("it names no MCP servers")

// declared is a server in the formats of Claude Desktop, Claude Code, Cursor, Windsurf
// and VS Code, which are one but for the name of the member that holds them.
type declared struct {
	Type      string         `json:"type"`
	Transport string         `json:"transport"`
	Command   string         `json:"command"`
	Args      []any          `json:"args"`
	Env       map[string]any `json:"env"`
	CWD       string         `json:"cwd"`
	EnvFile   string         `json:"envFile"`
	URL       string         `json:"url"`
	ServerURL string         `json:"serverUrl"`
	Headers   map[string]any `json:"headers"`
	Disabled  bool           `json:"disabled"`
}

// Servers reads the MCP servers of a configuration file: of Claude Desktop
// (claude_desktop_config.json), Claude Code (.mcp.json, ~/.claude.json), Cursor
// (mcp.json) or VS Code (mcp.json, settings.json). Project is the folder whose own
// servers are meant where one file holds those of many. Comments and trailing commas
// are read. The error is [ErrNoServers], or says what is wrong with the JSON.
func Servers(content []byte, project string) ([]Server, error) {
	if len(content) > maxConfig {
		return nil, fmt.Errorf("it has more than %d MiB", maxConfig>>20)
	}
	var file struct {
		MCPServers map[string]declared `json:"mcpServers"`
		Servers    map[string]declared `json:"servers"`
		MCP        struct {
			Servers map[string]declared `json:"servers"`
		} `json:"mcp"`
		Projects map[string]struct {
			MCPServers map[string]declared `json:"mcpServers"`
		} `json:"projects"`
	}
	if err := json.Unmarshal(jsonc.ToJSON(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))), &file); err != nil {
		return nil, err
	}
	all := make(map[string]declared)
	for _, servers := range []map[string]declared{file.MCP.Servers, file.Servers, file.MCPServers, file.Projects[project].MCPServers} {
		maps.Copy(all, servers)
	}
	if len(all) == 0 {
		return nil, ErrNoServers
	}
	servers := make([]Server, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		servers = append(servers, all[name].server(name))
	}
	return servers, nil
}

// server puts a declaration into the words of an item.
func (d declared) server(name string) Server {
	r := rewriter{server: name, variables: make(map[string]bool)}
	s := Server{
		Name: name, Type: d.Type, Command: r.text(d.Command), Dir: r.text(d.CWD), URL: r.url(firstOf(d.URL, d.ServerURL)),
		Args: r.args(d.Args), Env: r.values(d.Env, "env"), Headers: r.values(d.Headers, "headers"),
	}
	if s.Type == "" {
		s.Type = d.Transport
	}
	if d.EnvFile != "" {
		r.note("envFile is not read: set what is in it as variables")
	}
	if d.Disabled {
		r.note("it is switched off there")
	}
	s.Variables, s.Notes = slices.Sorted(maps.Keys(r.variables)), r.notes
	return s
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// asText is a value that should be a text, and in some files is a number.
func asText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil || value == nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
