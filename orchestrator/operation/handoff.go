package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// HandoffInput is the input of handoff_thread.
type HandoffInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	Summary  string    `json:"summary,omitempty" alias:"message,text"`
}

// HandoffThread has a running thread hand over. The new thread may use any tool.
var HandoffThread = Operation[HandoffInput, continuation.HandoffAsked]{
	Name: "handoff_thread", Title: "Have a thread hand over", Group: Threads, Effect: Destructive | Idempotent | OpenWorld,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in HandoffInput) (continuation.HandoffAsked, error) {
		ask := continuation.HandoffAsk{ThreadID: in.ThreadID, Summary: in.Summary, By: by.By}
		if by.InThread {
			ask.From = by.Env.ThreadID
		}
		return c.Continue.AskHandoff(ctx, ask)
	},
}
