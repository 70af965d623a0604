package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// MapInput is the input of map_threads.
type MapInput struct {
	Directive   string         `json:"directive,omitempty" alias:"item_id,directive_id"`
	Items       []tool.Object  `json:"items,omitempty" alias:"inputs,list"`
	Concurrency int            `json:"concurrency,omitempty" minimum:"1" maximum:"256"`
	MaxSpend    *thread.Micros `json:"max_spend,omitempty" alias:"spend,budget"`
	RequestKey  string         `json:"request_key,omitempty"`
	Set         string         `json:"set,omitempty" alias:"thread_id,set_id,cursor,next_cursor"` // or a next_cursor
	Wait        *float64       `json:"wait_seconds,omitempty" alias:"timeout" minimum:"0"`
}

// MapThreads starts a directive for each item of a list. It is about the open world: the
// threads it starts may use any tool.
var MapThreads = Operation[MapInput, fanout.Answer]{
	Name: "map_threads", Title: "Run a directive for each item", Group: Threads, Effect: Destructive | OpenWorld | Idempotent, Run: mapThreads,
}

func mapThreads(ctx context.Context, c *control.Controller, by action.Caller, in MapInput) (fanout.Answer, error) {
	if (in.Directive == "") == (in.Set == "") {
		return fanout.Answer{}, tool.Faultf(tool.CodeBadArguments, "give directive and items, or set").
			WithHint("directive and items start a set, or find it; set is the thread_id of one that there is")
	}
	req := control.MapRequest{
		Request: fanout.Request{
			Directive: in.Directive, Concurrency: in.Concurrency, RequestKey: in.RequestKey, MaxSpend: in.MaxSpend,
		},
		Async: by.Detached, WaitSeconds: in.Wait,
	}
	req.Set, req.Cursor = fanout.ParseCursor(in.Set)
	if in.Set == "" {
		if err := mayRun(by, in.Directive); err != nil {
			return fanout.Answer{}, err
		}
		if len(in.Items) > fanout.MaxItems {
			return fanout.Answer{}, fanout.TooMany(len(in.Items))
		}
	}
	for i, one := range in.Items {
		inputs, err := one.Map()
		if err != nil {
			return fanout.Answer{}, tool.Faultf(tool.CodeBadArguments, "item %d: %w", i, err).With("item", i)
		}
		req.Items = append(req.Items, inputs)
	}
	return c.Map(ctx, by, req)
}

// mayRun refuses a thread that may not execute the directive.
func mayRun(by action.Caller, directive string) error {
	switch {
	case !by.InThread:
		return nil
	case by.Allow == nil:
		return tool.Faultf(tool.CodePermissionDenied, "threads are not started from here")
	}
	return by.Allow(permission.Required(permission.Execute, item.Directive, directive))
}
