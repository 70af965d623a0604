package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// ApproveInput is the input of approve_thread.
type ApproveInput struct {
	ThreadID thread.ID          `json:"thread_id" alias:"id,thread,thread_ids"`
	Decision thread.Decision    `json:"decision" alias:"answer" enum:"raise,finish,stop,go_on,accept,decline"`
	Limits   map[string]float64 `json:"limits,omitempty" alias:"limit_overrides" jsonschema:"of raise: {turns: 30} or {spend: 0.5} (dollars)"`
	Summary  string             `json:"summary,omitempty" alias:"message,text"`
}

// ApproveThread answers a thread that waits. It is destructive, as it spends money
// or ends a thread: clients that ask their person about such calls shall ask.
var ApproveThread = Operation[ApproveInput, control.Approved]{
	Name: "approve_thread", Title: "Answer a thread that waits", Group: Threads, Effect: Destructive, Run: approveThread,
}

func approveThread(ctx context.Context, c *control.Controller, by action.Caller, in ApproveInput) (control.Approved, error) {
	req := control.ApproveRequest{ThreadID: in.ThreadID, Decision: in.Decision, Limits: in.Limits, Summary: in.Summary, By: by.By, Person: by.Person}
	if by.InThread {
		req.From = by.Env.ThreadID
	}
	return c.Approve(ctx, req)
}
