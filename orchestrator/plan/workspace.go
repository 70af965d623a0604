package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// wantsWorkspace is the type of the workspace that a thread is to have of its own, by the
// call or by the directive; empty: it works where its parent does.
func (p *Plan) wantsWorkspace() string { return cmp.Or(p.Request.Workspace, p.Doc.Workspace) }

// checkWorkspace refuses a workspace that could not be made.
func (c *Planner) checkWorkspace(ctx context.Context, p *Plan) error {
	wanted := p.wantsWorkspace()
	switch {
	case wanted == "":
		return nil
	case !slices.Contains(thread.WorkspaceTypes(), wanted):
		return tool.Faultf(tool.CodeBadArguments, "workspace %.40q is unknown; valid are %s", wanted, strings.Join(thread.WorkspaceTypes(), ", "))
	case c.Threads.Workspaces == nil:
		return tool.Faultf(tool.CodeUnsupported, "threads of this program have no workspaces")
	}
	return c.Threads.Workspaces.Check(ctx, thread.Workspace{})
}

// Workspace is where a thread of the plan works: a workspace of its own, that of its
// parent, or, where it is nil, the project.
func (p *Plan) Workspace(id thread.ID) *thread.Workspace {
	var above *thread.Workspace
	if p.Parent != nil {
		above = p.Parent.Workspace
	}
	wanted := p.wantsWorkspace()
	if wanted == "" {
		return above
	}
	w := &thread.Workspace{Type: wanted, Name: thread.NewWorkspaceName(), Of: id}
	if above != nil {
		w.From, w.FromOf = above.Name, above.Of
	}
	return w
}
