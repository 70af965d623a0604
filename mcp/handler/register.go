package handler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
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
		addExecute(s, projects, operations, slices.Contains(groups, Threads))
		addFetch(s, projects)
		addSearch(s, projects)
		addSign(s, projects)
	}
	var elsewhere []string
	for _, e := range operations.Entries() {
		switch {
		case slices.Contains(groups, Group(e.Group)):
			addOperation(s, projects, e)
		case e.Group != operation.Inside:
			elsewhere = append(elsewhere, e.Name)
		}
	}
	if len(elsewhere) > 0 && slices.Contains(groups, Core) {
		s.Reach(server.Elsewhere{Names: elsewhere, Instruction: reachText, Call: operationCall})
	}
}

// reachText tells a model of operations that have no tools of their own: instructions,
// results and other tools name them.
const reachText = "For an operation that is named and no tool here, call rye_execute: item_id " +
	action.OrchestratorID + `, parameters {"operation":"wait_threads","thread_ids":[...]}.`

// operationCall is the call of rye_execute that runs an operation with its arguments.
func operationCall(name string, args json.RawMessage) string {
	params, err := tool.Object(args).Map()
	if err != nil {
		params = map[string]any{}
	}
	call := map[string]any{}
	if path, given := params[projectPath]; given {
		call[projectPath] = path
		delete(params, projectPath)
	}
	params["operation"] = name
	call["item_id"], call["parameters"] = action.OrchestratorID, params
	raw, err := asItIs(call)
	if err != nil {
		return "rye_execute with item_id " + action.OrchestratorID
	}
	return "rye_execute " + strings.TrimSpace(string(raw))
}
