package handler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// Group is a part of the tools. A client can be offered some of them, because
// every description takes room in the context of its model.
type Group string

// The groups.
const (
	Core    Group = "core"    // the primary actions, which reach everything
	Threads Group = "threads" // a tool for each operation on threads
	Admin   Group = "admin"   // how the threads of a project are, for whoever looks after it
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

// Register adds the tools of the groups to the server.
func Register(s *server.Server, projects Projects, groups []Group) {
	if slices.Contains(groups, Core) {
		addExecute(s, projects)
		addFetch(s, projects)
		addSearch(s, projects)
		addSign(s, projects)
	}
	if slices.Contains(groups, Threads) {
		addWaitThreads(s, projects)
		addGetStatus(s, projects)
		addListActive(s, projects)
		addListThreads(s, projects)
		addAggregateResults(s, projects)
		addReadTranscript(s, projects)
		addCancelThread(s, projects)
		addKillThread(s, projects)
		addApproveThread(s, projects)
		addResumeThread(s, projects)
		addGetChain(s, projects)
		addChainSearch(s, projects)
	}
	if slices.Contains(groups, Admin) {
		addThreadHealth(s, projects)
		addReconcileThreads(s, projects)
	}
}

// looks are the annotations of tools that only look.
func looks(title string) server.Annotations {
	return server.Annotations{Title: title, ReadOnly: true, Idempotent: true}
}
