package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// ResumeInput is the input of resume_thread.
type ResumeInput struct {
	ThreadID thread.ID          `json:"thread_id" alias:"id,thread,thread_ids,resume_thread_id"`
	Message  string             `json:"message" minLength:"1" alias:"text,prompt"`
	Limits   map[string]float64 `json:"limits,omitempty" alias:"limit_overrides" jsonschema:"else as it began"`
	Model    string             `json:"model,omitempty"`
}

// ResumeThread resumes a thread that has ended. It is about the open world:
// the thread it starts may use any tool.
var ResumeThread = Operation[ResumeInput, continuation.Resumed]{
	Name: "resume_thread", Title: "Resume a thread that has ended", Group: Threads, Effect: Destructive | OpenWorld, Untold: []string{"model"},
	Run: resumeThread,
}

func resumeThread(ctx context.Context, c *control.Controller, by action.Caller, in ResumeInput) (continuation.Resumed, error) {
	req := continuation.ResumeRequest{
		ThreadID: in.ThreadID, Message: in.Message, Model: in.Model, Limits: in.Limits,
		Person: by.Person, TraceID: by.Env.TraceID, Origin: by.Origin,
	}
	if by.InThread {
		req.From, req.Exempt = by.Env.ThreadID, by.Hook != nil && by.Hook.Exempt
	}
	resumed, err := c.Continue.Resume(ctx, req)
	if err == nil && by.Started != nil {
		by.Started(resumed.NewThreadID, resumed.Directive)
	}
	return resumed, err
}

// GetChain tells of all threads that do one piece of work, one after the other.
var GetChain = Operation[ThreadInput, view.Chain]{
	Name: "get_chain", Title: "Show a chain of threads", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in ThreadInput) (view.Chain, error) {
		return c.View.GetChain(ctx, in.ThreadID)
	},
}

// ChainSearch searches the transcripts of a chain.
var ChainSearch = Operation[view.ChainSearchInput, view.ChainMatches]{
	Name: "chain_search", Title: "Search the transcripts of a chain", Group: Threads, Effect: Looks, Untold: []string{"limit"},
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in view.ChainSearchInput) (view.ChainMatches, error) {
		return c.View.ChainSearch(ctx, in)
	},
}
