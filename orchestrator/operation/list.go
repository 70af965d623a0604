package operation

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// ListActiveInput is the input of list_active.
type ListActiveInput struct {
	ParentID thread.ID `json:"parent_id,omitempty" alias:"parent,parent_thread_id"`
	Limit    int       `json:"limit,omitempty" minimum:"1" maximum:"100" default:"50"`
	Cursor   string    `json:"cursor,omitempty" alias:"next_cursor"`
}

// ListActive lists the threads that have not ended.
var ListActive = Operation[ListActiveInput, view.List]{
	Name: "list_active", Title: "List working threads", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in ListActiveInput) (view.List, error) {
		return fittingPage(ctx, c, by.Room, view.ListRequest{
			States: []thread.State{thread.Created, thread.Running}, Parent: in.ParentID, Limit: in.Limit, Cursor: in.Cursor,
		})
	},
}

// ListInput is the input of list_threads.
type ListInput struct {
	Status    []thread.State `json:"status,omitempty" alias:"state,states" jsonschema:"created, running, completed, error, cancelled, continued"`
	Directive string         `json:"directive,omitempty" alias:"directive_id,item_id"`
	ParentID  thread.ID      `json:"parent_id,omitempty" alias:"parent,parent_thread_id"`
	Query     string         `json:"query,omitempty" alias:"text" jsonschema:"in id, name or directive"`
	Limit     int            `json:"limit,omitempty" minimum:"1" maximum:"100" default:"50"`
	Cursor    string         `json:"cursor,omitempty" alias:"next_cursor"`
}

// ListThreads lists threads.
var ListThreads = Operation[ListInput, view.List]{
	Name: "list_threads", Title: "List threads", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in ListInput) (view.List, error) {
		for i, state := range in.Status {
			in.Status[i] = thread.State(strings.ToLower(string(state)))
		}
		return fittingPage(ctx, c, by.Room, view.ListRequest{
			States: in.Status, Directive: in.Directive, Parent: in.ParentID, Text: in.Query, Limit: in.Limit, Cursor: in.Cursor,
		})
	},
}

// fittingPage lists again with a lower limit where a page is longer than the
// answer may be; next_cursor then begins earlier.
func fittingPage(ctx context.Context, c *control.Controller, room int, req view.ListRequest) (view.List, error) {
	for {
		page, err := c.View.List(ctx, req)
		if err != nil || room <= 0 || len(page.Threads) < 2 {
			return page, err
		}
		raw, err := json.Marshal(page)
		if err != nil || len(raw) <= room {
			return page, err
		}
		req.Limit = max(1, min(len(page.Threads)-1, len(page.Threads)*room/len(raw)))
	}
}
