package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// listedServer is a server of mcp list.
type listedServer struct {
	ItemID string       `json:"item_id"`
	Space  item.Space   `json:"space"`
	Runs   string       `json:"runs"`
	Tools  int          `json:"tools"`
	State  trust.Status `json:"state"`
}

func newMCPListCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List MCP servers, and how many of their tools are items",
		Args:  usageArgs(cobra.NoArgs),
		RunE: shows(func(*cobra.Command, []string) error {
			roots, err := openRoots(sys, *opts)
			if err != nil {
				return err
			}
			servers, err := listServers(sys, roots)
			if err != nil {
				return err
			}
			return conclude(sys, asJSON, servers, true, func() error { return writeServers(newDisplay(sys, *opts), servers) })
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// listServers reads the tools of all spaces; a tool that cannot be read is no server.
func listServers(sys System, roots resolve.Roots) ([]listedServer, error) {
	resolver := resolve.New(roots)
	entries, err := resolver.All(item.Tool)
	if err != nil {
		return nil, err
	}
	gate := newGate(sys, roots).Once(config.New(roots).Read().Integrity)
	servers, tools, seen := []listedServer{}, map[string]int{}, map[string]bool{}
	for _, e := range entries { // the first of an id is the one that is executed
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		found, err := resolver.Find(item.Tool, e.ID)
		if err != nil {
			continue
		}
		doc, err := found.Tool()
		if err != nil {
			continue
		}
		settings, _ := doc.Metadata["config"].(map[string]any)
		if of, ok := settings["server"].(string); ok {
			tools[of]++
		}
		if doc.ToolType != "mcp_server" {
			continue
		}
		verified, err := gate.Verify(trust.SubjectOf(found))
		if err != nil {
			return nil, err
		}
		servers = append(servers, listedServer{ItemID: found.ID, Space: found.Space, Runs: declaredRuns(settings), State: verified.Status})
	}
	for i := range servers {
		servers[i].Tools = tools[servers[i].ItemID]
	}
	return servers, nil
}

// declaredRuns is what the configuration of a server starts, or where it is.
func declaredRuns(settings map[string]any) string {
	if address, ok := settings["url"].(string); ok {
		return address
	}
	line, _ := settings["command"].(string)
	args, _ := settings["args"].([]any)
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			line += " " + text
		}
	}
	return line
}

func writeServers(d display, servers []listedServer) error {
	t := table{header: []string{"server", "space", "tools", "signature", "runs"}}
	for _, s := range servers {
		state := cell{string(s.State), yellow}
		if s.State.Good() {
			state.color = green
		}
		t.add(text(s.ItemID), text(string(s.Space)), text(strconv.Itoa(s.Tools)), state, text(s.Runs))
	}
	return t.write(d)
}
