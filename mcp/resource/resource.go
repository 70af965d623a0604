package resource

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Resources shows the threads and items of the project of a call.
type Resources struct{ Projects handler.Projects }

var _ server.Resources = (*Resources)(nil)

// project is that of an address. A thread leads to its own, as it does in calls.
func (r *Resources) project(ctx context.Context, call server.Call, a Address) (*handler.Project, error) {
	var ids []thread.ID
	if a.Thread != "" {
		ids = []thread.ID{a.Thread}
	}
	return handler.ProjectOf(ctx, r.Projects, call, a.Project, ids)
}

// Bounds of what is listed: a client shows a list to its model, or to a person who
// scrolls.
const (
	listedWorking = 20
	listedEnded   = 20
	listPage      = 25
)

// List has the board and the results of the threads that work or have ended last. It is
// empty where there is no project: a client asks as soon as it has connected.
func (r *Resources) List(ctx context.Context, _ server.Call, cursor string) ([]mcp.Resource, string, error) {
	from, err := parseListCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	p, err := r.Projects.Project(ctx, "")
	if fault, ok := errors.AsType[*tool.Fault](err); ok && fault.Code == tool.CodeNoProject {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	board, err := p.Control.View.Board(ctx, listedWorking, listedEnded)
	if err != nil {
		return nil, "", err
	}
	all := []mcp.Resource{{
		URI: Address{Part: Board}.String(), Name: "threads", Title: "Threads of this project", MIMEType: mimeJSON,
		Description: "How the threads stand that work, and those that have ended last.",
	}}
	for _, rows := range [][]view.BoardRow{board.Threads, board.Ended} {
		for _, row := range rows {
			all = append(all, listed(row))
		}
	}
	from = min(from, len(all))
	to := min(from+listPage, len(all))
	next := ""
	if to < len(all) {
		next = listCursor(to)
	}
	return all[from:to], next, nil
}

// listed is the result of a thread in a list.
func listed(row view.BoardRow) mcp.Resource {
	res := mcp.Resource{
		URI: Address{Part: Result, Thread: row.ThreadID}.String(), Name: string(row.ThreadID), Title: item.Clip(row.Name, maxTitle), MIMEType: mimeJSON,
		Description: describe(row),
	}
	res.Annotations = &mcp.Annotations{LastModified: row.UpdatedAt.UTC().Format("2006-01-02T15:04:05Z")}
	return res
}
