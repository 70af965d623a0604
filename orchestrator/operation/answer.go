package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// ApproveInput is the input of approve_thread.
type ApproveInput struct {
	ThreadID thread.ID          `json:"thread_id" alias:"id,thread" jsonschema:"the thread that waits"`
	Decision thread.Decision    `json:"decision" enum:"raise,finish,stop,go_on" jsonschema:"raise: go on under new limits; finish: one last turn to return what it has; stop: the limit, or the failure, ends it; go_on: try again what failed"`
	Limits   map[string]float64 `json:"limits,omitempty" alias:"limit_overrides" jsonschema:"of raise: the new values, such as turns or spend (US dollars). The limit that was hit must be among them"`
}

// ApproveThread answers a thread that waits. It is destructive, as it spends money
// or ends a thread: clients that ask their person about such calls shall ask.
var ApproveThread = Operation[ApproveInput, control.Approved]{
	Name: "approve_thread", Title: "Answer a thread that waits", Group: Threads, Effect: Destructive, Run: approveThread,
}

func approveThread(ctx context.Context, c *control.Controller, by action.Caller, in ApproveInput) (control.Approved, error) {
	req := control.ApproveRequest{ThreadID: in.ThreadID, Decision: in.Decision, Limits: in.Limits, By: by.By, Person: by.Person}
	if by.InThread {
		req.From = by.Env.ThreadID
	}
	return c.Approve(ctx, req)
}
