package operation

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ListActiveInput is the input of list_active.
type ListActiveInput struct {
	ParentID thread.ID `json:"parent_id,omitempty" alias:"parent,parent_thread_id"`
	Limit    int       `json:"limit,omitempty" minimum:"1" maximum:"100" default:"50"`
	Cursor   string    `json:"cursor,omitempty" alias:"next_cursor"`
}

// ListActive lists the threads that have not ended.
var ListActive = Operation[ListActiveInput, view.List]{
	Name: "list_active", Title: "List working threads", Group: Threads, Effect: Looks, Untold: []string{"limit"},
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in ListActiveInput) (view.List, error) {
		req := view.ListRequest{
			States: []thread.State{thread.Created, thread.Running}, Parent: in.ParentID, Limit: in.Limit, Cursor: in.Cursor,
		}
		list, err := fittingPage(ctx, c, by.Room, req)
		if !by.Person {
			list = list.Brief(req)
		}
		return list, err
	},
}

// ListInput is the input of list_threads.
type ListInput struct {
	Status    []thread.State `json:"status,omitempty" alias:"state,states"`
	Directive string         `json:"directive,omitempty" alias:"directive_id,item_id"`
	ParentID  thread.ID      `json:"parent_id,omitempty" alias:"parent,parent_thread_id"`
	Query     string         `json:"query,omitempty" alias:"text" jsonschema:"id, name, directive"`
	Metadata  tool.Object    `json:"metadata,omitempty"`
	OlderThan string         `json:"older_than,omitempty" alias:"age,older"`
	NewerThan string         `json:"newer_than,omitempty" alias:"newer,since"`
	Sort      string         `json:"sort,omitempty" alias:"order_by,sort_by" jsonschema:"last_used, tokens, spend, name; asc"`
	Limit     int            `json:"limit,omitempty" minimum:"1" maximum:"100" default:"50"`
	Cursor    string         `json:"cursor,omitempty" alias:"next_cursor"`
	Name      string         `json:"-"` // a part of it, which Query finds too; for the command line
}

// ListThreads lists threads.
var ListThreads = Operation[ListInput, view.List]{
	Name: "list_threads", Title: "List threads", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in ListInput) (view.List, error) {
		req, err := in.request()
		if err != nil {
			return view.List{}, err
		}
		list, err := fittingPage(ctx, c, by.Room, req)
		if !by.Person {
			list = list.Brief(req)
		}
		return list, err
	},
}

func (in ListInput) request() (view.ListRequest, error) {
	req := view.ListRequest{
		Directive: in.Directive, Parent: in.ParentID, Text: in.Query, Name: in.Name, Metadata: json.RawMessage(in.Metadata),
		Limit: in.Limit, Cursor: in.Cursor,
	}
	for _, state := range in.Status {
		req.States = append(req.States, thread.State(strings.ToLower(string(state))))
	}
	var err error
	if req.OlderThan, err = age("older_than", in.OlderThan); err != nil {
		return req, err
	}
	if req.NewerThan, err = age("newer_than", in.NewerThan); err != nil {
		return req, err
	}
	req.Sort, err = view.ParseSort(in.Sort)
	return req, err
}

// age is a bound of a list; nil when none is given.
func age(name, text string) (*time.Duration, error) {
	if text == "" {
		return nil, nil
	}
	d, err := tidy.ParseAge(text)
	if err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "%s: %w", name, err)
	}
	return &d, nil
}

// besideList is what the server tells beside a list: news, and that the answer succeeded.
const besideList = 300

// fittingPage lists again with a lower limit where a page is longer than the
// answer may be; next_cursor then begins earlier.
func fittingPage(ctx context.Context, c *control.Controller, room int, req view.ListRequest) (view.List, error) {
	for {
		page, err := c.View.List(ctx, req)
		if err != nil || room <= 0 || len(page.Threads) < 2 {
			return page, err
		}
		raw, err := json.Marshal(page)
		if err != nil || len(raw)+besideList <= room {
			return page, err
		}
		req.Limit = max(1, min(len(page.Threads)-1, len(page.Threads)*max(room-besideList, 0)/len(raw)))
	}
}
