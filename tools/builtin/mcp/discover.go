package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Source is what discovering needs of a project.
type Source struct {
	Resolver    *resolve.Resolver
	Connections *mcpclient.Connections
	// Server is how the server of an mcp_server item is reached. The item has been
	// verified then.
	Server func(context.Context, *resolve.Found) (mcpclient.Server, error)
	Now    func() time.Time
}

// State is what became of a tool of a server.
type State string

// The states of a tool.
const (
	New     State = "new"     // its item was written
	Changed State = "changed" // its item was written anew: the server says something else now
	Same    State = "same"    // its item says what the server says
	Kept    State = "kept"    // another item has its id, and stays
	Left    State = "left"    // it cannot be an item
	Gone    State = "gone"    // the server has it no more; its item stays
)

// Discovered is what became of the tools of a server.
type Discovered struct {
	Server string           `json:"server"`
	Space  item.Space       `json:"space" jsonschema:"where the items are"`
	Tools  []DiscoveredTool `json:"tools"`
	Next   string           `json:"next,omitempty"`
}

// DiscoveredTool is a tool of a server and its item.
type DiscoveredTool struct {
	Tool   string `json:"tool" jsonschema:"the name that the server gives it"`
	ItemID string `json:"item_id,omitempty"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	Path   string `json:"path,omitempty"`
}

// Discover asks a server for its tools and writes an item for each. Items are written
// into the space of the server's item, or the project. They are not signed.
func (s Source) Discover(ctx context.Context, id string, into item.Space) (*Discovered, error) {
	found, server, err := s.server(ctx, id)
	if err != nil {
		return nil, err
	}
	if into == "" {
		into = found.Space
	}
	dir, err := s.dirOf(found, into)
	if err != nil {
		return nil, err
	}
	offered, err := s.Connections.Tools(ctx, server)
	if err != nil {
		return nil, mcpclient.Fault(err)
	}
	slices.SortFunc(offered, func(a, b mcpclient.Tool) int { return strings.Compare(a.Name, b.Name) })
	folder, err := itemfile.Open(dir, item.Tool)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // the file is synced by then
	w := writer{source: s, server: server, space: into, folder: folder, result: &Discovered{Server: id, Space: into, Tools: []DiscoveredTool{}}}
	return w.result, w.writeAll(offered)
}

// server finds the item of a server and how it is reached.
func (s Source) server(ctx context.Context, id string) (*resolve.Found, mcpclient.Server, error) {
	found, err := s.Resolver.Find(item.Tool, id)
	if err != nil {
		return nil, mcpclient.Server{}, err
	}
	server, err := s.Server(ctx, found)
	return found, server, err
}

// dirOf is the folder of the space for the items. A server of the project cannot be
// named by items of the user, which do not depend on projects.
func (s Source) dirOf(server *resolve.Found, into item.Space) (string, error) {
	roots := s.Resolver.Roots()
	switch {
	case into == item.Project && roots.Project != "":
		return roots.Project, nil
	case into == item.User && server.Space == item.Project:
		return "", tool.Faultf(tool.CodeUnsupported, "%s is a server of this project, and items of the user do not depend on projects", server.ID).
			WithHint("Leave space out.")
	case into == item.User && roots.User != "":
		return roots.User, nil
	}
	return "", tool.Faultf(tool.CodeUnsupported, "items of tools are written into the project or the user space, not %q", into)
}

// writer writes the items of one server's tools.
type writer struct {
	source Source
	server mcpclient.Server
	space  item.Space
	folder *itemfile.Folder
	result *Discovered
}

func (w writer) writeAll(offered []mcpclient.Tool) error {
	before, err := w.existing()
	if err != nil {
		return err
	}
	taken, written := make(map[string]bool), 0
	for _, t := range offered {
		done := DiscoveredTool{Tool: t.Name, ItemID: idOf(w.server.ID, t.Name, taken)}
		delete(before, done.ItemID)
		if err := w.write(t, &done); err != nil {
			return err
		}
		if done.State == New || done.State == Changed {
			written++
		}
		w.result.Tools = append(w.result.Tools, done)
	}
	for id, name := range before {
		w.result.Tools = append(w.result.Tools, DiscoveredTool{Tool: name, ItemID: id, State: Gone, Reason: "the server has it no more; its item stays"})
	}
	slices.SortStableFunc(w.result.Tools[len(offered):], func(a, b DiscoveredTool) int { return strings.Compare(a.ItemID, b.ItemID) })
	if written > 0 {
		w.result.Next = fmt.Sprintf("%d items are not signed, and are not executed before somebody has read them and signed %q.", written, folderOf(w.server.ID)+"/*")
	}
	return nil
}

// write writes the item of a tool, unless it says the same already.
func (w writer) write(t mcpclient.Tool, done *DiscoveredTool) error {
	made, err := itemOf(w.server, t, done.ItemID)
	if err != nil {
		done.State, done.Reason = Left, err.Error()
		return nil //nolint:nilerr // it is told beside the others
	}
	there, err := w.source.Resolver.In(w.space).Look(item.Tool, done.ItemID)
	switch {
	case err != nil:
		return err
	case there == nil:
		return w.put(made, done, New)
	case !w.isOurs(there):
		done.State, done.Path, done.Reason = Kept, there.Path, "another item has this id"
		return nil
	case says(there, made):
		done.State, done.Path = Same, there.Path
		return nil
	}
	return w.put(made, done, Changed)
}

func (w writer) put(made file, done *DiscoveredTool, state State) error {
	var replacing time.Time
	if state == Changed {
		replacing = w.source.Now()
	}
	put, err := w.folder.Put(made.id, ".yaml", made.content, replacing)
	if taken, ok := errors.AsType[*itemfile.TakenError](err); ok {
		done.State, done.Path, done.Reason = Kept, taken.Path, taken.Error()
		return nil
	}
	done.State, done.Path = state, put.Path
	return err
}

// says reports whether an item says what another would, signature and comments apart.
func says(there *resolve.Found, made file) bool {
	var read toolItem
	if yaml.Unmarshal(there.Content, &read) != nil {
		return false
	}
	plain(&read.InputSchema)
	text, err := encode(read)
	return err == nil && bytes.Equal(text, made.content)
}

// isOurs reports whether an item is that of a tool of the server.
func (w writer) isOurs(found *resolve.Found) bool {
	var read toolItem
	return yaml.Unmarshal(found.Content, &read) == nil && read.ToolType == typeTool && read.Config.Server == w.server.ID
}

// existing are the items of the server's tools that are there, by id, with the names
// of the tools.
func (w writer) existing() (map[string]string, error) {
	entries, err := w.source.Resolver.All(item.Tool)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string)
	for _, e := range entries {
		if e.Space != w.space || path.Dir(e.ID) != folderOf(w.server.ID) {
			continue
		}
		found, err := w.source.Resolver.In(w.space).Find(item.Tool, e.ID)
		if err != nil || !w.isOurs(found) {
			continue // an item that cannot be read is nobody's
		}
		var read toolItem
		if yaml.Unmarshal(found.Content, &read) == nil {
			names[e.ID] = read.Config.ToolName
		}
	}
	return names, nil
}
