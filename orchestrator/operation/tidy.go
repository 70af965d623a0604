package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// DeleteInput is the input of delete_thread.
type DeleteInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	DryRun   bool      `json:"dry_run,omitempty"`
	Confirm  bool      `json:"confirm,omitempty" alias:"yes"`
	Force    bool      `json:"force,omitempty"`
}

// DeleteThread deletes a thread with its chain and all below it.
var DeleteThread = Operation[DeleteInput, tidy.Deleted]{
	Name: "delete_thread", Title: "Delete a thread", Group: Threads, Effect: Destructive | Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in DeleteInput) (tidy.Deleted, error) {
		return c.Tidy.Delete(ctx, tidy.DeleteRequest{
			ThreadID: in.ThreadID, DryRun: in.DryRun, Confirm: in.Confirm, Force: in.Force,
			From: threadOf(by), By: by.By, Progress: action.Told[tidy.Progress](by),
		})
	},
}

// CleanupInput is the input of cleanup_threads.
type CleanupInput struct {
	OlderThan string         `json:"older_than" alias:"age,older" jsonschema:"30d, 12h"`
	Status    []thread.State `json:"status,omitempty" alias:"state,states"`
	Directive string         `json:"directive,omitempty" alias:"directive_id,item_id"`
	DryRun    bool           `json:"dry_run,omitempty"`
	Confirm   bool           `json:"confirm,omitempty" alias:"yes"`
}

// CleanupThreads deletes threads that have ended and are old enough.
var CleanupThreads = Operation[CleanupInput, tidy.Cleaned]{
	Name: "cleanup_threads", Title: "Delete old threads", Group: Admin, Effect: Destructive | Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in CleanupInput) (tidy.Cleaned, error) {
		return c.Tidy.Cleanup(ctx, tidy.CleanupRequest{
			Status: in.Status, OlderThan: in.OlderThan, Directive: in.Directive, DryRun: in.DryRun, Confirm: in.Confirm,
			From: threadOf(by), By: by.By, Progress: action.Told[tidy.Progress](by),
		})
	},
}

// threadOf is the thread that calls; empty for a client or a person.
func threadOf(by action.Caller) thread.ID {
	if by.InThread {
		return by.Env.ThreadID
	}
	return ""
}
