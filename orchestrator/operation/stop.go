package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// StopInput is the input of cancel_thread and kill_thread.
type StopInput struct {
	ThreadIDs []thread.ID `json:"thread_ids" alias:"thread_id,id,ids,thread,threads"`
}

// CancelThread stops a thread and everything below it.
var CancelThread = Operation[StopInput, stop.Stopped]{
	Name: "cancel_thread", Title: "Cancel a thread", Group: Threads, Effect: Destructive | Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in StopInput) (stop.Stopped, error) {
		if err := mayStop(ctx, c, by, in.ThreadIDs); err != nil {
			return stop.Stopped{}, err
		}
		return c.Stop.By(whoStops(c, by)).Cancel(ctx, in.ThreadIDs...)
	},
}

// KillThread ends the processes of a thread and of everything below it.
var KillThread = Operation[StopInput, stop.Stopped]{
	Name: "kill_thread", Title: "Kill a thread", Group: Threads, Effect: Destructive | Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in StopInput) (stop.Stopped, error) {
		if err := mayStop(ctx, c, by, in.ThreadIDs); err != nil {
			return stop.Stopped{}, err
		}
		return c.Stop.By(whoStops(c, by)).Kill(ctx, in.ThreadIDs...)
	},
}

// whoStops is the caller, as threads that it stops name it.
func whoStops(c *control.Controller, by action.Caller) string {
	id := by.Env.ThreadID
	if !by.InThread {
		id = c.Threads.Parent // a command that a thread has started
	}
	switch {
	case by.By != "" && !by.InThread:
		return by.By
	case id != "":
		return fmt.Sprintf("thread %s", id)
	}
	return stop.ByPerson
}

// mayStop lets a thread stop its own descendants only. It stops none where it may not
// stop all.
func mayStop(ctx context.Context, c *control.Controller, by action.Caller, ids []thread.ID) error {
	if !by.InThread {
		return nil
	}
	for _, id := range ids {
		err := c.Threads.IsBelow(ctx, id, by.Env.ThreadID, "so it cannot be stopped from there")
		if err != nil && (len(ids) == 1 || !errors.Is(err, thread.ErrNotFound)) {
			return err
		}
	}
	return nil
}
