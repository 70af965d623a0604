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

	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
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

// declared is a server in the formats of the clients that are known: Claude's, which
// Cursor, Windsurf, Gemini CLI and VS Code share, and what Codex, OpenCode and Zed have
// of their own.
type declared struct {
	Type        string         `json:"type"`
	Transport   string         `json:"transport"`
	Command     any            `json:"command"` // OpenCode: with the arguments; Zed: once an object
	Args        []any          `json:"args"`
	Env         map[string]any `json:"env"`
	Environment map[string]any `json:"environment"` // OpenCode
	EnvVars     []any          `json:"env_vars"`    // Codex: names alone
	CWD         string         `json:"cwd"`
	EnvFile     string         `json:"envFile"`
	URL         string         `json:"url"`
	ServerURL   string         `json:"serverUrl"` // Windsurf
	HTTPURL     string         `json:"httpUrl"`   // Gemini CLI
	Headers     map[string]any `json:"headers"`
	HTTPHeaders map[string]any `json:"http_headers"`         // Codex
	Bearer      string         `json:"bearer_token_env_var"` // Codex
	Disabled    bool           `json:"disabled"`
	Enabled     *bool          `json:"enabled"`
}

// configuration is a file of any of the clients. None has a member that is another's.
type configuration struct {
	MCPServers     map[string]declared        `json:"mcpServers"`
	Servers        map[string]declared        `json:"servers"`
	ContextServers map[string]declared        `json:"context_servers"`
	CodexServers   map[string]declared        `json:"mcp_servers"`
	MCP            map[string]json.RawMessage `json:"mcp"` // of OpenCode, or settings of VS Code
	Projects       map[string]struct {
		MCPServers map[string]declared `json:"mcpServers"`
	} `json:"projects"`
}

// Servers reads the MCP servers of a configuration file of a client, in JSON with comments
// and trailing commas or in TOML. Project is the folder whose own servers are meant where
// one file holds those of many. The error is [ErrNoServers], or says what is wrong with
// the file.
func Servers(content []byte, project string) ([]Server, error) {
	if len(content) > maxConfig {
		return nil, fmt.Errorf("it has more than %d MiB", maxConfig>>20)
	}
	file, err := readConfiguration(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, err
	}
	all, err := file.underMCP()
	if err != nil {
		return nil, err
	}
	for _, servers := range []map[string]declared{file.ContextServers, file.CodexServers, file.Servers, file.MCPServers, file.Projects[project].MCPServers} {
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

// readConfiguration reads JSON, or TOML where the file does not begin as JSON does.
func readConfiguration(content []byte) (configuration, error) {
	var file configuration
	plain := bytes.TrimSpace(jsonc.ToJSON(content))
	if len(plain) > 0 && plain[0] != '{' {
		if whole, err := clients.DecodeTOML(content); err == nil {
			// The rest of Codex' file, beside its servers, has other shapes.
			plain, err = json.Marshal(map[string]any{"mcp_servers": whole["mcp_servers"]})
			if err != nil {
				return file, err
			}
		}
	}
	return file, json.Unmarshal(plain, &file)
}

// underMCP are the servers below mcp: of OpenCode by their names, of OpenCode 2 and in the
// settings of VS Code one table further in. An entry with neither command nor address is
// none.
func (c configuration) underMCP() (map[string]declared, error) {
	all := make(map[string]declared)
	for name, raw := range c.MCP {
		if name == "servers" {
			if err := json.Unmarshal(raw, &all); err != nil {
				return nil, err
			}
			continue
		}
		var d declared
		if json.Unmarshal(raw, &d) == nil && (d.Command != nil || d.URL != "") {
			all[name] = d
		}
	}
	return all, nil
}

// server puts a declaration into the words of an item.
func (d declared) server(name string) Server {
	r := rewriter{server: name, variables: make(map[string]bool)}
	command, args := d.commandLine()
	s := Server{
		Name: name, Type: d.kind(), Command: r.text(command), Dir: r.text(d.CWD), URL: r.url(firstOf(d.URL, d.ServerURL, d.HTTPURL)),
		Args: r.args(args), Env: r.values(d.environment(), "env"), Headers: r.values(d.headers(), "headers"),
	}
	if d.EnvFile != "" {
		r.note("envFile is not read: set what is in it as variables")
	}
	if d.Disabled || d.Enabled != nil && !*d.Enabled {
		r.note("it is switched off there")
	}
	s.Variables, s.Notes = slices.Sorted(maps.Keys(r.variables)), r.notes
	return s
}

// commandLine is the command with its arguments, in whichever form it is written.
func (d declared) commandLine() (string, []any) {
	switch command := d.Command.(type) {
	case string:
		return command, d.Args
	case []any:
		if len(command) > 0 {
			return asText(command[0]), command[1:]
		}
	case map[string]any:
		args, _ := command["args"].([]any)
		return asText(command["path"]), args
	}
	return "", d.Args
}

// kind is how the server is talked with, in the words of Claude's form.
func (d declared) kind() string {
	switch kind := firstOf(d.Type, d.Transport); kind {
	case "local":
		return "stdio"
	case "remote":
		return "http"
	default:
		return kind
	}
}

// environment are the variables that the server gets: values, references and names.
func (d declared) environment() map[string]any {
	all := joined(d.Env, d.Environment)
	for _, name := range d.EnvVars {
		all[asText(name)] = "${" + asText(name) + "}"
	}
	return all
}

func (d declared) headers() map[string]any {
	all := joined(d.Headers, d.HTTPHeaders)
	if d.Bearer != "" {
		all["Authorization"] = "Bearer ${" + d.Bearer + "}"
	}
	return all
}

// joined are the entries of both, with references of OpenCode ({env:NAME}) and of Gemini
// CLI ($NAME) as those of the others (${env:NAME}).
func joined(a, b map[string]any) map[string]any {
	all := make(map[string]any, len(a)+len(b))
	for _, entries := range []map[string]any{a, b} {
		for name, value := range entries {
			text, ok := value.(string)
			if rest, is := strings.CutPrefix(text, "$"); is && rest == variableName(rest) {
				value = "${" + rest + "}"
			} else if ok && !strings.Contains(text, "${") {
				value = strings.ReplaceAll(text, "{env:", "${env:")
			}
			all[name] = value
		}
	}
	return all
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
