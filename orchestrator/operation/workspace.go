package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/changeset"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// DiffInput is the input of diff_thread.
type DiffInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	Path     string    `json:"path,omitempty"`
	Offset   int       `json:"offset,omitempty" minimum:"1"`
}

// DiffThread shows what a thread has changed in its workspace.
var DiffThread = Operation[DiffInput, changeset.Shown]{
	Name: "diff_thread", Title: "Show what a thread changed", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in DiffInput) (changeset.Shown, error) {
		return c.Changed.Diff(ctx, changeset.Request{
			ThreadID: in.ThreadID, From: asking(by), Path: in.Path, Offset: in.Offset, Room: by.Room,
		})
	},
}

// ApplyThread puts what a thread has changed in its workspace into the project, or into the
// workspace of the thread that asks.
var ApplyThread = Operation[ThreadInput, changeset.Applied]{
	Name: "apply_thread", Title: "Apply what a thread changed", Group: Threads, Effect: Destructive | Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in ThreadInput) (changeset.Applied, error) {
		return c.Changed.Apply(ctx, changeset.Request{ThreadID: in.ThreadID, From: asking(by)})
	},
}

// asking is the thread that calls; empty outside threads.
func asking(by action.Caller) thread.ID {
	if by.InThread {
		return by.Env.ThreadID
	}
	return ""
}
