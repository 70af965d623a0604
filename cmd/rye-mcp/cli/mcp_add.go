package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/foreign"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// addFlags are those of mcp add.
type addFlags struct {
	space   string
	env     []string
	headers []string
	json    bool
}

func newMCPAddCommand(sys System, opts *options) *cobra.Command {
	var flags addFlags
	cmd := &cobra.Command{
		Use:   "add NAME URL | add NAME -- COMMAND [ARGUMENT...]",
		Short: "Add an MCP server, signed with your key",
		Long: `Add an MCP server: one at an address (Streamable HTTP), or a command that speaks MCP on
its standard input and output. The item mcp/servers/NAME is signed with your key.

Values that may be secrets are not written into the item: ${NAME} stands for them, and
the command says which variables to set.`,
		Example: `  rye-mcp mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  rye-mcp mcp add api https://api.example.com/mcp --header 'Authorization: Bearer ${API_TOKEN}'
  rye-mcp mcp discover files`,
		Args: usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			server, err := flags.server(args[0], args[1:])
			if err != nil {
				return err
			}
			return addServer(sys, *opts, server, flags)
		},
	}
	cmd.Flags().StringVar(&flags.space, "space", string(item.Project), "project or user")
	completeFlag(cmd, "space", writableSpaces)
	cmd.Flags().StringArrayVar(&flags.env, "env", nil, "a variable for the command, `NAME=VALUE`; again for more")
	cmd.Flags().StringArrayVar(&flags.headers, "header", nil, "a header for the address, such as 'Authorization: Bearer …', as `'NAME: VALUE'`; again for more")
	jsonFlag(cmd, &flags.json)
	return cmd
}

// server is the one that the arguments name. It is read as one of another program's is,
// so that its secrets are kept out in the same way.
func (f addFlags) server(name string, rest []string) (foreign.Server, error) {
	if !slices.Contains(writableSpaces(), f.space) {
		return foreign.Server{}, &usageError{message: fmt.Sprintf("no item can be written to %q", item.Shown(f.space)), try: "--space project, --space user"}
	}
	env, err := namedValues(f.env, "=", "--env NAME=VALUE")
	if err != nil {
		return foreign.Server{}, err
	}
	headers, err := namedValues(f.headers, ":", "--header 'NAME: VALUE'")
	if err != nil {
		return foreign.Server{}, err
	}
	declared := map[string]any{"command": rest[0], "args": rest[1:], "env": env}
	if strings.HasPrefix(rest[0], "http://") || strings.HasPrefix(rest[0], "https://") {
		if len(rest) > 1 || len(env) > 0 {
			return foreign.Server{}, &usageError{message: "a server at an address takes no arguments and no --env", try: "rye-mcp mcp add " + item.Shown(name) + " URL"}
		}
		declared = map[string]any{"type": "http", "url": rest[0], "headers": headers}
	} else if len(headers) > 0 {
		return foreign.Server{}, &usageError{message: "--header is for servers at an address", try: "--env NAME=VALUE"}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: declared}})
	if err != nil {
		return foreign.Server{}, err
	}
	servers, err := foreign.Servers(config, "")
	if err != nil {
		return foreign.Server{}, err
	}
	return servers[0], nil
}

// namedValues takes names and values apart.
func namedValues(entries []string, sign, try string) (map[string]string, error) {
	taken := make(map[string]string, len(entries))
	for _, entry := range entries {
		name, value, found := strings.Cut(entry, sign)
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, &usageError{message: fmt.Sprintf("%q has no name and value", item.Shown(entry)), try: try}
		}
		taken[name] = strings.TrimSpace(value)
	}
	return taken, nil
}

func addServer(sys System, opts options, server foreign.Server, flags addFlags) error {
	return withServerWriter(sys, opts, item.Space(flags.space), true, func(w serverWriter) error {
		done, err := w.write(server)
		if err != nil {
			return err
		}
		if done.Kept != "" {
			return &usageError{message: done.Kept, try: "another name, or remove that item first"}
		}
		return conclude(sys, flags.json, done, true, func() error {
			if _, err := fmt.Fprintf(sys.Stdout, "wrote   %s\nsigned  with your key %s\n", plain.Line(done.Path), done.SignedBy); err != nil {
				return err
			}
			if err := tellVariables(sys, done.Variables); err != nil {
				return err
			}
			_, err := fmt.Fprintf(sys.Stdout, "\nNext: rye-mcp mcp discover %s\n", strings.TrimPrefix(done.ItemID, "mcp/servers/"))
			return err
		})
	})
}
