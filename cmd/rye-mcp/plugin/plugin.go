// Package plugin makes the plugin of Claude Code: the server, a monitor that wakes the
// model when a thread has ended or asks, a hook that does so where there are no monitors,
// and a skill that teaches delegation.
//
// The format is that of https://code.claude.com/docs/en/plugins-reference; "claude
// plugin validate" of Claude Code 2.1.197 accepts it without a warning. A monitor needs
// 2.1.105 or newer and an interactive session: each line of its standard output is an
// event that the model is told of, also between two turns.
package plugin

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Name is what the plugin is called; its server has the same name.
const Name = "rye"

// Server is how Claude Code starts this program.
type Server struct {
	Command string            // absolute path of the program
	Args    []string          // of the server; none: --stdio
	Project string            // for server and monitor; empty: the folder of the session
	Env     map[string]string // of the server, as .mcp.json has it
	Version string            // of the plugin; Claude Code updates by it. Empty: 0.0.0
}

// File is one file of the plugin.
type File struct {
	Path string // below the folder of the plugin, with slashes
	Data []byte
}

//go:embed files
var texts embed.FS

// manifest is .claude-plugin/plugin.json. The folders have their default names, so that
// it names none.
type manifest struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	Author      author   `json:"author"`
	Keywords    []string `json:"keywords"`
}

type author struct {
	Name string `json:"name"`
}

// mcpFile is .mcp.json.
type mcpFile struct {
	Servers map[string]mcpServer `json:"mcpServers"`
}

type mcpServer struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// monitor is an entry of monitors/monitors.json.
type monitor struct {
	Name        string `json:"name"`
	Command     string `json:"command"` // for a shell, in the folder of the session
	Description string `json:"description"`
	When        string `json:"when"`
}

// hooksFile is hooks/hooks.json.
type hooksFile struct {
	Description string                 `json:"description"`
	Hooks       map[string][]hookGroup `json:"hooks"`
}

type hookGroup struct {
	Hooks []hook `json:"hooks"`
}

// hook is a command that runs beside the session after each turn, and wakes the model
// when it ends with code 2. Where the monitor runs, or no thread works, it ends at once.
type hook struct {
	Type        string `json:"type"`
	Command     string `json:"command"`
	AsyncRewake bool   `json:"asyncRewake"`
	Timeout     int    `json:"timeout"` // in seconds
}

// hookTimeout is longer than most threads are given: a day.
const hookTimeout = 86_400

// Files are all files of the plugin, by path.
func Files(s Server) ([]File, error) {
	if s.Command == "" || strings.ContainsAny(s.Command, "\x00\n\r") {
		return nil, fmt.Errorf("the path %q of the program cannot be written into the plugin", s.Command)
	}
	if len(s.Args) == 0 {
		s.Args = []string{"--stdio"}
	}
	if s.Version == "" {
		s.Version = "0.0.0"
	}
	watch := "exec " + quoted(s.Command) + " threads watch --mine"
	if s.Project != "" {
		s.Args = append(slices.Clone(s.Args), "--project", s.Project)
		watch += " --project " + quoted(s.Project)
	}
	all := map[string]any{
		".claude-plugin/plugin.json": manifest{
			Name: Name, Version: s.Version, Author: author{Name: "rye-mcp"},
			Description: "Runs whole LLM conversations as background threads with budgets and permissions, and wakes you when one ends",
			Keywords:    []string{"agents", "threads", "mcp"},
		},
		".mcp.json": mcpFile{Servers: map[string]mcpServer{Name: {Command: s.Command, Args: s.Args, Env: s.Env}}},
		"monitors/monitors.json": []monitor{{
			Name: "threads", Command: watch,
			Description: "rye threads: one that you started has ended, or asks (wait_threads or get_status with its id tells more)",
			When:        "always",
		}},
		"hooks/hooks.json": hooksFile{
			Description: "Wakes the model where the monitor does not run",
			Hooks: map[string][]hookGroup{"Stop": {{Hooks: []hook{{
				Type: "command", Command: watch + " --once", AsyncRewake: true, Timeout: hookTimeout,
			}}}}},
		},
	}
	var files []File
	for _, path := range slices.Sorted(maps.Keys(all)) {
		data, err := encode(all[path])
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		files = append(files, File{Path: path, Data: data})
	}
	return appendTexts(files)
}

// appendTexts adds what is a text in this package.
func appendTexts(files []File) ([]File, error) {
	err := fs.WalkDir(texts, "files", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := texts.ReadFile(path)
		files = append(files, File{Path: strings.TrimPrefix(path, "files/"), Data: data})
		return err
	})
	return files, err
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// quoted is a word of a shell's command line. Claude Code replaces ${…} in the command
// before the shell sees it, so that a dollar sign stands alone.
func quoted(word string) string {
	word = strings.ReplaceAll(word, `'`, `'\''`)
	return "'" + strings.ReplaceAll(word, `${`, `$''{`) + "'"
}
