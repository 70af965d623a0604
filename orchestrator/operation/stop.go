package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// CancelThread stops a thread and everything below it.
var CancelThread = Operation[ThreadInput, stop.Stopped]{
	Name: "cancel_thread", Title: "Cancel a thread", Group: Threads, Effect: Destructive | Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in ThreadInput) (stop.Stopped, error) {
		if err := mayStop(ctx, c, by, in.ThreadID); err != nil {
			return stop.Stopped{}, err
		}
		return c.Stop.Cancel(ctx, in.ThreadID)
	},
}

// KillThread ends the processes of a thread and of everything below it.
var KillThread = Operation[ThreadInput, stop.Stopped]{
	Name: "kill_thread", Title: "Kill a thread", Group: Threads, Effect: Destructive | Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in ThreadInput) (stop.Stopped, error) {
		if err := mayStop(ctx, c, by, in.ThreadID); err != nil {
			return stop.Stopped{}, err
		}
		return c.Stop.Kill(ctx, in.ThreadID)
	},
}

// mayStop lets a thread stop its own descendants only.
func mayStop(ctx context.Context, c *control.Controller, by action.Caller, id thread.ID) error {
	if !by.InThread {
		return nil
	}
	return c.Threads.IsBelow(ctx, id, by.Env.ThreadID, "so it cannot be stopped from there")
}
