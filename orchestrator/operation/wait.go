package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// WaitInput is the input of wait_threads.
type WaitInput struct {
	ThreadIDs []thread.ID `json:"thread_ids" alias:"thread_id,ids,id,threads"`
	Mode      string      `json:"mode,omitempty" enum:"all,any" default:"all"`
	Wait      *float64    `json:"wait_seconds,omitempty" alias:"timeout" minimum:"0" jsonschema:"0 looks once"`
}

// WaitThreads waits until threads have ended.
var WaitThreads = Operation[WaitInput, view.WaitResult]{
	Name: "wait_threads", Title: "Wait for threads", Group: Threads, Effect: Looks, Run: waitThreads,
}

func waitThreads(ctx context.Context, c *control.Controller, by action.Caller, in WaitInput) (view.WaitResult, error) {
	timeout, err := c.WaitTime(by, in.Wait)
	if err != nil {
		return view.WaitResult{}, err
	}
	req := control.WaitRequest{
		ThreadIDs: in.ThreadIDs, Mode: in.Mode, Timeout: timeout, Progress: action.Told[control.Progress](by), Ask: by.Ask,
		Caller: by.By, Patient: in.Wait != nil,
	}
	if by.InThread {
		req.Parent = by.Env.ThreadID
	}
	waited, err := c.Wait(ctx, req)
	if !by.Person {
		waited.Results = view.BriefResults(waited.Results)
	}
	return waited, err
}
