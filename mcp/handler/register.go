package handler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
)

// Group is a part of the tools. A client can be offered some of them, because
// every description takes room in the context of its model.
type Group string

// The groups.
const (
	Core    Group = "core"                   // the primary actions, which reach everything
	Threads       = Group(operation.Threads) // a tool for each operation on threads
	Admin         = Group(operation.Admin)   // how the threads of a project are, for whoever looks after it
)

// Groups lists the groups.
func Groups() []Group { return []Group{Core, Threads, Admin} }

// ParseGroups reads a list such as "core,threads". Empty stands for all.
func ParseGroups(list string) ([]Group, error) {
	if list == "" {
		return Groups(), nil
	}
	var groups []Group
	for name := range strings.SplitSeq(list, ",") {
		group := Group(strings.TrimSpace(name))
		if !slices.Contains(Groups(), group) {
			return nil, fmt.Errorf("there are no tools %q; valid are %v", group, Groups())
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// Register adds the tools of the groups to the server: the primary actions, and the
// operations of a table.
func Register(s *server.Server, projects Projects, groups []Group, operations *operation.Table) {
	if slices.Contains(groups, Core) {
		addExecute(s, projects, slices.Contains(groups, Threads))
		addFetch(s, projects)
		addSearch(s, projects)
		addSign(s, projects)
	}
	for _, e := range operations.Entries() {
		if slices.Contains(groups, Group(e.Group)) {
			addOperation(s, projects, e)
		}
	}
}
