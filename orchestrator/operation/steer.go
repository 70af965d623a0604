package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/steer"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// SteerInput is the input of steer_thread.
type SteerInput struct {
	ThreadID  thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	Message   string    `json:"message" alias:"text,prompt"`
	Interrupt bool      `json:"interrupt,omitempty" jsonschema:"its call too"`
}

// SteerThread tells a thread something while it works.
var SteerThread = Operation[SteerInput, steer.Steered]{
	Name: "steer_thread", Title: "Tell a thread something", Group: Threads, Effect: 0,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in SteerInput) (steer.Steered, error) {
		req := steer.Request{ThreadID: in.ThreadID, Message: in.Message, Interrupt: in.Interrupt, By: by.By, Person: by.Person}
		if by.InThread {
			req.From = by.Env.ThreadID
		}
		return c.Steer.Steer(ctx, req)
	},
}

// NoteInput is the input of send_note.
type NoteInput struct {
	To      string `json:"to" jsonschema:"parent, or a thread id"`
	Message string `json:"message" alias:"text,note"`
}

// SendNote tells another thread of the same work something.
var SendNote = Operation[NoteInput, steer.Steered]{
	Name: "send_note", Title: "Write a note to another thread", Group: Inside, Effect: 0,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in NoteInput) (steer.Steered, error) {
		req := steer.NoteRequest{To: in.To, Text: in.Message}
		if by.InThread {
			req.From = by.Env.ThreadID
		}
		return c.Steer.Note(ctx, req)
	},
}
