package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/foreign"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/mcp"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newMCPCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Use the tools of other MCP servers",
		Long: `Use the tools of other MCP servers, in threads and through rye_execute.

A server is an item (tool_type mcp_server) of the project or the user, and so is each
of its tools, once "rye-mcp mcp discover" has written them. Like all items they are
executed when somebody has signed them.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMCPAddCommand(sys, opts), newMCPListCommand(sys, opts), newMCPDiscoverCommand(sys, opts), newMCPImportCommand(sys, opts))
	return cmd
}

// mcpWritten is what became of the item of a server.
type mcpWritten struct {
	ItemID    string     `json:"item_id"`
	Space     item.Space `json:"space"`
	Path      string     `json:"path,omitempty"`
	SignedBy  string     `json:"signed_by,omitempty"`
	Kept      string     `json:"kept,omitempty"` // why it was not written
	Runs      string     `json:"runs"`           // what it starts, or where it is
	Variables []string   `json:"variables,omitempty"`
	Notes     []string   `json:"notes,omitempty"`
}

// serverWriter writes the items of servers into a space.
type serverWriter struct {
	sys    System
	space  item.Space
	folder *itemfile.Folder
	key    *sign.Key // nil: items are not signed
}

// withServerWriter opens the folder of tools of a space.
func withServerWriter(sys System, opts options, space item.Space, signed bool, do func(serverWriter) error) error {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	w := serverWriter{sys: sys, space: space}
	if signed {
		if w.key, err = sign.Load(roots.User); err != nil {
			return action.Fault(err) // without a key it says how to make one
		}
	}
	if w.folder, err = openItems(roots, space, item.Tool); err != nil {
		return err
	}
	return errors.Join(do(w), w.folder.Close())
}

func (w serverWriter) write(s foreign.Server) (mcpWritten, error) {
	done := mcpWritten{Space: w.space, Runs: runs(s), Variables: s.Variables, Notes: s.Notes}
	id, err := mcp.ServerID(s.Name)
	if err != nil {
		done.Kept = err.Error()
		return done, nil //nolint:nilerr // it is told beside the others
	}
	done.ItemID = id
	content, err := mcp.ServerItem(s)
	if err != nil {
		done.Kept = err.Error()
		return done, nil //nolint:nilerr // it is told beside the others
	}
	if w.key != nil {
		as := trust.NameOf(resolve.Entry{Kind: item.Tool, ID: id, Ext: ".yaml"})
		if content, err = sign.Attach(content, ".yaml", as, w.key, w.sys.Now()); err != nil {
			return done, err
		}
	}
	written, err := w.folder.Put(id, ".yaml", content, time.Time{})
	if taken, ok := errors.AsType[*itemfile.TakenError](err); ok {
		done.Kept = taken.Error()
		return done, nil
	}
	if err != nil {
		return done, unwritable(err)
	}
	done.Path = written.Path
	if w.key != nil {
		done.SignedBy = w.key.Fingerprint()
	}
	return done, nil
}

// runs is what a server starts, or where it is, on one line.
func runs(s foreign.Server) string {
	if s.URL != "" {
		return s.URL
	}
	return strings.Join(append([]string{s.Command}, s.Args...), " ")
}

// tellVariables says which variables have to be set, and where.
func tellVariables(sys System, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(sys.Stdout, "\nSet %s in the environment of rye-mcp, or in the project's .env.\n", strings.Join(names, ", "))
	return err
}

// discoverFlags are those of mcp discover.
type discoverFlags struct {
	space  string
	signed bool
	json   bool
}

func newMCPDiscoverCommand(sys System, opts *options) *cobra.Command {
	var flags discoverFlags
	cmd := &cobra.Command{
		Use:   "discover SERVER...",
		Short: "Ask servers for their tools, and write an item for each",
		Long: `Ask servers for their tools, and write an item for each that is new or has changed. A
server is named by its item, mcp/servers/NAME, or by NAME.

What a server says of its tools is written down as its words. Read the items, then sign
them; --sign does so at once.`,
		Example: `  rye-mcp mcp discover github
  rye-mcp sign 'mcp/github/*'`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.space != "" && !slices.Contains(writableSpaces(), flags.space) {
				return &usageError{message: fmt.Sprintf("no item can be written to %q", item.Shown(flags.space)), try: "--space project, --space user"}
			}
			p, err := openNamed(cmd.Context(), sys, *opts)
			if err != nil {
				return err
			}
			return errors.Join(discover(cmd.Context(), sys, *opts, p, args, flags), p.Close())
		},
	}
	cmd.Flags().StringVar(&flags.space, "space", "", "project or user (default: that of the server's item)")
	completeFlag(cmd, "space", writableSpaces)
	cmd.Flags().BoolVar(&flags.signed, "sign", false, "sign what was written, with your key")
	jsonFlag(cmd, &flags.json)
	return cmd
}

func discover(ctx context.Context, sys System, opts options, p *project, servers []string, flags discoverFlags) error {
	all := make([]*mcp.Discovered, 0, len(servers))
	for _, server := range servers {
		if !strings.Contains(server, "/") {
			server = mcp.ServersFolder + "/" + server
		}
		found, err := p.servers(sys).Discover(ctx, server, item.Space(flags.space))
		if missing, is := errors.AsType[*resolve.NotFoundError](err); is && len(missing.Nearest) == 0 {
			return tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("rye-mcp mcp list shows the servers; rye-mcp mcp add makes one")
		}
		if err != nil {
			return action.ToolFault(server, err)
		}
		if flags.signed {
			if err := signDiscovered(ctx, p, found); err != nil {
				return err
			}
		}
		all = append(all, found)
	}
	return conclude(sys, flags.json, all, true, func() error { return writeDiscovered(sys, newDisplay(sys, opts), all) })
}

// signDiscovered signs the items that were written.
func signDiscovered(ctx context.Context, p *project, found *mcp.Discovered) error {
	for _, t := range found.Tools {
		if t.State != mcp.New && t.State != mcp.Changed {
			continue
		}
		signed, err := p.actions.Sign(ctx, action.Caller{}, action.SignRequest{ItemType: string(item.Tool), ItemID: t.Path})
		if err != nil {
			return err
		}
		if !signed.Success {
			return tool.Faultf(tool.CodeInvalidItem, "%s is not signed: %s", t.ItemID, signed.Failed[0].Error)
		}
	}
	found.Next = ""
	return nil
}

func writeDiscovered(sys System, d display, all []*mcp.Discovered) error {
	for _, found := range all {
		var t table
		for _, tool := range found.Tools {
			t.add(cell{string(tool.State), toolStateColor(tool.State)}, text(tool.ItemID), text(item.Shown(tool.Tool)), text(tool.Reason))
		}
		if err := t.write(d); err != nil {
			return err
		}
		if found.Next != "" {
			if _, err := fmt.Fprintf(sys.Stdout, "\nRead the items in %s, then: rye-mcp sign 'mcp/%s/*'\n", found.Space, path.Base(found.Server)); err != nil {
				return err
			}
		}
	}
	return nil
}

func toolStateColor(s mcp.State) color {
	switch s {
	case mcp.New, mcp.Changed:
		return green
	case mcp.Kept, mcp.Left, mcp.Gone:
		return yellow
	case mcp.Same:
	}
	return dim
}

// newServers is how tools of other servers are found in a project.
func newServers(p *project, primitive mcpclient.Primitive, now func() time.Time) mcp.Source {
	return mcp.Source{
		Resolver: p.resolver, Connections: primitive.Connections, Now: now,
		Server: func(ctx context.Context, found *resolve.Found) (mcpclient.Server, error) {
			plan, err := p.executor.Server(ctx, found, tool.Env{Project: p.path})
			if err != nil {
				return mcpclient.Server{}, err
			}
			return primitive.ServerOf(plan)
		},
	}
}
