package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/foreign"
	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/builtin/mcp"
)

// importFlags are those of mcp import.
type importFlags struct {
	space  string
	only   []string
	signed bool
	json   bool
}

func newMCPImportCommand(sys System, opts *options) *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Take over MCP servers that other clients are configured with",
		Long: `Take over the MCP servers of a configuration file of Claude Code, Claude Desktop, Cursor,
VS Code, Zed, Windsurf, Codex, Gemini CLI or OpenCode. Without a file it lists the ones it
finds, and writes nothing.

Each server becomes an item, which is not signed: read what it starts first. --sign
signs them at once. What may be a secret is not taken over: ${NAME} stands in its
place, and the command says which variables to set.`,
		Example: `  rye-mcp mcp import
  rye-mcp mcp import .cursor/mcp.json --only github
  rye-mcp sign 'mcp/servers/*'`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(writableSpaces(), flags.space) {
				return &usageError{message: fmt.Sprintf("no item can be written to %q", item.Shown(flags.space)), try: "--space project, --space user"}
			}
			if len(args) == 0 {
				return listConfigurations(sys, *opts, flags.json)
			}
			return importServers(sys, *opts, args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.space, "space", string(item.User), "project or user")
	completeFlag(cmd, "space", writableSpaces)
	cmd.Flags().StringSliceVar(&flags.only, "only", nil, "servers of these `names` only")
	cmd.Flags().BoolVar(&flags.signed, "sign", false, "sign what was written, with your key")
	jsonFlag(cmd, &flags.json)
	return cmd
}

// configuration is a file in which another program names MCP servers.
type configuration struct {
	Program string   `json:"program"`
	Path    string   `json:"path"`
	Servers []string `json:"servers,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// configurations are the places where clients keep theirs.
func configurations(sys System, roots resolve.Roots, home string) []configuration {
	var all []configuration
	machine := clients.Machine{OS: runtime.GOOS, Home: home, Getenv: sys.Getenv}
	for _, c := range clients.All() {
		if c.Project != "" {
			all = append(all, configuration{Program: c.Title + " (project)", Path: filepath.Join(roots.Project, filepath.FromSlash(c.Project))})
		}
	}
	for _, c := range clients.All() {
		for _, path := range c.Files(machine) {
			if home != "" && !slices.ContainsFunc(all, func(other configuration) bool { return other.Path == path }) {
				all = append(all, configuration{Program: c.Title, Path: path})
			}
		}
	}
	return all
}

func listConfigurations(sys System, opts options, asJSON bool) error {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	home, err := sys.HomeDir()
	if err != nil {
		home = ""
	}
	found := []configuration{}
	for _, c := range configurations(sys, roots, home) {
		servers, err := readServers(c.Path, roots.Project)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, foreign.ErrNoServers):
			continue
		case err != nil:
			c.Problem = err.Error()
		}
		for _, s := range servers {
			c.Servers = append(c.Servers, s.Name)
		}
		found = append(found, c)
	}
	return conclude(sys, asJSON, found, true, func() error { return writeConfigurations(sys, newDisplay(sys, opts), found) })
}

func writeConfigurations(sys System, d display, found []configuration) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(sys.Stdout, "No configuration of a client names an MCP server.")
		return err
	}
	t := table{header: []string{"program", "servers", "file"}}
	for _, c := range found {
		servers := text(strconv.Itoa(len(c.Servers)))
		if c.Problem != "" {
			servers = cell{"not read: " + item.ShownIn(c.Problem), red}
		}
		t.add(text(c.Program), servers, text(c.Path))
	}
	if err := t.write(d); err != nil {
		return err
	}
	_, err := fmt.Fprintln(sys.Stdout, "\nNext: rye-mcp mcp import FILE")
	return err
}

// maxServers bounds a configuration of another program, in bytes.
const maxServers = 16 << 20

func readServers(path, project string) ([]foreign.Server, error) {
	content, err := regular.ReadFollowed(path, maxServers)
	if errors.Is(err, regular.ErrNot) {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, err
	}
	return foreign.Servers(content, project)
}

func importServers(sys System, opts options, path string, flags importFlags) error {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	servers, err := readServers(path, roots.Project)
	if err != nil {
		return &usageError{message: fmt.Sprintf("%s: %s", path, item.ShownIn(err.Error())), try: "rye-mcp mcp import, which lists the files it finds"}
	}
	if len(flags.only) > 0 {
		servers = slices.DeleteFunc(servers, func(s foreign.Server) bool { return !slices.Contains(flags.only, s.Name) })
		if len(servers) == 0 {
			return &usageError{message: path + " names no server of that name", try: "rye-mcp mcp import " + path}
		}
	}
	var all []mcpWritten
	return withServerWriter(sys, opts, item.Space(flags.space), flags.signed, func(w serverWriter) error {
		for _, s := range servers {
			done, err := w.write(s)
			if err != nil {
				return err
			}
			all = append(all, done)
		}
		return conclude(sys, flags.json, all, true, func() error { return writeImported(sys, newDisplay(sys, opts), all, servers) })
	})
}

func writeImported(sys System, d display, all []mcpWritten, servers []foreign.Server) error {
	var t table
	written := 0
	for _, done := range all {
		state, reason := cell{"written", green}, done.Runs
		if done.SignedBy != "" {
			state.text = "signed"
		}
		if done.Kept != "" {
			state, reason = cell{"left", yellow}, done.Kept
		} else if done.SignedBy == "" {
			written++
		}
		t.add(state, text(done.ItemID), text(reason))
		for _, note := range done.Notes {
			t.add(cell{"", dim}, text(""), text(note))
		}
	}
	d.width = 0 // people are to read whole what is started
	if err := t.write(d); err != nil {
		return err
	}
	if err := tellVariables(sys, mcp.Variables(servers)); err != nil {
		return err
	}
	if written == 0 {
		return nil
	}
	_, err := fmt.Fprintln(sys.Stdout, "\nRead what they start, then: rye-mcp sign 'mcp/servers/*'")
	return err
}
