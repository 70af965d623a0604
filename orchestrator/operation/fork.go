package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// ForkInput is the input of fork_thread.
type ForkInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	AtTurn   *int      `json:"at_turn,omitempty" alias:"turn"`
	Name     string    `json:"name,omitempty"`
	Message  string    `json:"message,omitempty" alias:"text,prompt"`
}

// ForkThread copies a thread. It is about the open world: the copy may use any tool.
var ForkThread = Operation[ForkInput, continuation.Forked]{
	Name: "fork_thread", Title: "Fork a thread", Group: Threads, Effect: Destructive | OpenWorld, Run: forkThread,
}

func forkThread(ctx context.Context, c *control.Controller, by action.Caller, in ForkInput) (continuation.Forked, error) {
	req := continuation.ForkRequest{
		ThreadID: in.ThreadID, AtTurn: in.AtTurn, Name: in.Name, Message: in.Message,
		Person: by.Person, TraceID: by.Env.TraceID, Origin: by.Origin,
	}
	if by.InThread {
		req.From, req.Exempt = by.Env.ThreadID, by.Hook != nil && by.Hook.Exempt
	}
	forked, err := c.Continue.Fork(ctx, req)
	if err == nil && by.Started != nil {
		by.Started(forked.ThreadID, forked.Directive)
	}
	return forked, err
}
