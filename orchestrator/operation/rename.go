package operation

import (
	"context"
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// RenameInput is the input of rename_thread.
type RenameInput struct {
	ThreadID thread.ID   `json:"thread_id" alias:"id,thread,thread_ids"`
	Name     string      `json:"name,omitempty" alias:"new_name,title"`
	Metadata tool.Object `json:"metadata,omitempty"`
}

// Renamed is the answer to rename_thread.
type Renamed struct {
	Success  bool        `json:"success"`
	ThreadID thread.ID   `json:"thread_id"`
	Name     string      `json:"name"`
	Metadata tool.Object `json:"metadata,omitempty"`
}

// RenameThread gives a thread, and those of its chain, another name or metadata.
var RenameThread = Operation[RenameInput, Renamed]{
	Name: "rename_thread", Title: "Rename a thread", Group: Threads, Effect: Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in RenameInput) (Renamed, error) {
		var from thread.ID
		if by.InThread {
			from = by.Env.ThreadID
		}
		rec, err := c.Threads.Label(ctx, in.ThreadID, from, in.Name, json.RawMessage(in.Metadata))
		return Renamed{Success: err == nil, ThreadID: rec.ThreadID, Name: rec.Name, Metadata: tool.Object(rec.Metadata)}, err
	},
}
