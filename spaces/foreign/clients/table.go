package clients

import (
	"path/filepath"
	"slices"
)

// callSeconds is how long a client with a time limit of its own is told to wait for one
// call: a synchronous thread may take that long, and rye answers long before when it is
// not told to wait.
const callSeconds = 3600

// All are the clients, in the order in which they are shown. Paths, keys and forms are
// those of their documentation in November 2026. The variables that a server gets were
// seen with Claude Code 2.1.197, Codex 0.169, Gemini CLI 0.61 and OpenCode 1.18.33, for
// the others they are those of the documentation.
func All() []Client { return slices.Concat(claudes(), editors(), agents()) }

// claudes are the clients of Anthropic.
func claudes() []Client {
	return []Client{
		{
			ID: "claude-code", Title: "Claude Code", Project: ".mcp.json", Programs: []string{"claude"},
			Passes: Everything, Strict: true, Lock: true, keys: []string{"mcpServers"}, members: stdio,
			files: func(m Machine) []string {
				return []string{filepath.Join(moved(m, "CLAUDE_CONFIG_DIR"), ".claude.json")}
			},
			plugins: func(m Machine) string {
				return filepath.Join(moved(m, "CLAUDE_CONFIG_DIR", ".claude"), "skills")
			},
			Then: "start claude anew, or /mcp in it; claude mcp list shows the server",
		},
		{
			ID: "claude-desktop", Title: "Claude Desktop",
			Passes: Little, Strict: true, Homeless: true, keys: []string{"mcpServers"}, members: plain,
			files: func(m Machine) []string {
				return []string{filepath.Join(appData(m), "Claude", "claude_desktop_config.json")}
			},
			Then: "quit Claude Desktop and start it anew",
		},
	}
}

// editors are the clients that people write in.
func editors() []Client {
	return []Client{
		{
			ID: "cursor", Title: "Cursor", Project: ".cursor/mcp.json", Programs: []string{"cursor", "cursor-agent"},
			Passes: Referred, reference: func(name string) string { return "${env:" + name + "}" },
			keys: []string{"mcpServers"}, members: stdio, workspace: "${workspaceFolder}",
			files: func(m Machine) []string { return []string{filepath.Join(m.Home, ".cursor", "mcp.json")} },
			Then:  "switch the server on in Cursor's settings, under MCP",
		},
		{
			ID: "vscode", Title: "VS Code", Project: ".vscode/mcp.json", Programs: []string{"code", "code-insiders", "codium"},
			Passes: Everything, keys: []string{"servers"}, members: stdio, workspace: "${workspaceFolder}",
			files: func(m Machine) []string {
				var files []string
				for _, name := range []string{"Code", "Code - Insiders", "VSCodium"} {
					files = append(files, filepath.Join(appData(m), name, "User", "mcp.json"))
				}
				return files
			},
			Then: "run \"MCP: List Servers\" in VS Code, start the server and trust it",
		},
		{
			ID: "zed", Title: "Zed", Project: ".zed/settings.json", Programs: []string{"zed", "zeditor"},
			Passes: Everything, keys: []string{"context_servers"}, members: zed,
			files: func(m Machine) []string {
				dir := filepath.Join(configHome(m), "zed")
				switch m.OS {
				case "windows":
					dir = filepath.Join(appData(m), "Zed")
				case "darwin":
					dir = filepath.Join(m.Home, ".config", "zed")
				}
				return []string{filepath.Join(dir, "settings.json")}
			},
			Then: "Zed takes it up at once; the settings of its agent panel show the server",
		},
		{
			ID: "windsurf", Title: "Windsurf", Programs: []string{"windsurf"},
			Passes: Referred, Homeless: true, reference: func(name string) string { return "${env:" + name + "}" },
			keys: []string{"mcpServers"}, members: referring,
			files: func(m Machine) []string {
				return []string{filepath.Join(m.Home, ".codeium", "windsurf", "mcp_config.json")}
			},
			Then: "refresh the servers in Windsurf's Cascade panel",
		},
	}
}

// agents are the clients of terminals.
func agents() []Client {
	return []Client{
		{
			ID: "codex", Title: "Codex", Project: ".codex/config.toml", Programs: []string{"codex"},
			Passes: Named, Lenient: true, format: tomlFormat, keys: []string{"mcp_servers"}, members: codex,
			files: func(m Machine) []string {
				return []string{filepath.Join(moved(m, "CODEX_HOME", ".codex"), "config.toml")}
			},
			Then: "start codex anew; codex mcp list shows the server. A project's file counts where Codex trusts the project",
		},
		{
			ID: "gemini", Title: "Gemini CLI", Project: ".gemini/settings.json", Programs: []string{"gemini"},
			Passes: Referred, Lenient: true, reference: func(name string) string { return "$" + name },
			keys: []string{"mcpServers"}, members: gemini,
			files: func(m Machine) []string {
				return []string{filepath.Join(moved(m, "GEMINI_CLI_HOME"), ".gemini", "settings.json")}
			},
			Then: "start gemini anew, in a folder that it trusts; /mcp shows the server",
		},
		{
			ID: "opencode", Title: "OpenCode", Project: "opencode.json", Programs: []string{"opencode"},
			Passes: Everything, keys: []string{"mcp"}, members: opencode,
			files: func(m Machine) []string {
				dir := filepath.Join(configHome(m), "opencode")
				if m.OS == "windows" {
					dir = filepath.Join(m.Home, ".config", "opencode")
				}
				return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
			},
			Then: "start opencode anew; opencode mcp list shows the server",
		},
	}
}
