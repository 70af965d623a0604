package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// ThreadInput names one thread.
type ThreadInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread" jsonschema:"id that rye_execute returned"`
}

// GetStatus tells how one thread stands.
var GetStatus = Operation[ThreadInput, control.Status]{
	Name: "get_status", Title: "Look at a thread", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in ThreadInput) (control.Status, error) {
		return c.Status(ctx, in.ThreadID)
	},
}

// GetBudget tells how the money of a thread stands. Clients see it in get_status.
var GetBudget = Operation[control.BudgetInput, control.BudgetAnswer]{
	Name: "get_budget", Title: "Look at the money of a thread", Group: Inside, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in control.BudgetInput) (control.BudgetAnswer, error) {
		return c.GetBudget(ctx, in)
	},
}

// AggregateInput is the input of aggregate_results.
type AggregateInput struct {
	ThreadIDs []thread.ID `json:"thread_ids" alias:"thread_id,ids,id,threads" jsonschema:"threads whose results are wanted"`
}

// AggregateResults gathers the results of threads.
var AggregateResults = Operation[AggregateInput, control.Aggregate]{
	Name: "aggregate_results", Title: "Gather results", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in AggregateInput) (control.Aggregate, error) {
		return c.Aggregate(ctx, in.ThreadIDs)
	},
}

// ReadTranscript reads what a thread did, a page at a time.
var ReadTranscript = Operation[control.TranscriptInput, control.TranscriptPage]{
	Name: "read_transcript", Title: "Read a transcript", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in control.TranscriptInput) (control.TranscriptPage, error) {
		return c.ReadTranscript(ctx, in)
	},
}

// ThreadHealth tells how the threads of a project are.
var ThreadHealth = Operation[control.HealthRequest, control.Health]{
	Name: "thread_health", Title: "Health of the threads", Group: Admin, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in control.HealthRequest) (control.Health, error) {
		return c.Health(ctx, in, told[control.Looked](by))
	},
}

// ReconcileThreads reports where registry, ledger and folders disagree.
var ReconcileThreads = Operation[control.ReconcileInput, control.Reconciliation]{
	Name: "reconcile_threads", Title: "Compare registry, ledger and folders", Group: Admin, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in control.ReconcileInput) (control.Reconciliation, error) {
		return c.Reconcile(ctx, in, told[control.Looked](by))
	},
}
