package operation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ThreadInput names one thread.
type ThreadInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
}

// GetStatus tells how one thread stands.
var GetStatus = Operation[ThreadInput, view.Status]{
	Name: "get_status", Title: "Look at a thread", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in ThreadInput) (view.Status, error) {
		return c.View.Status(ctx, in.ThreadID)
	},
}

// GetBudget tells how the money of a thread stands. Clients see it in get_status.
var GetBudget = Operation[view.BudgetInput, view.BudgetAnswer]{
	Name: "get_budget", Title: "Look at the money of a thread", Group: Inside, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in view.BudgetInput) (view.BudgetAnswer, error) {
		return c.View.GetBudget(ctx, in)
	},
}

// AggregateInput is the input of aggregate_results.
type AggregateInput struct {
	ThreadIDs []thread.ID `json:"thread_ids" alias:"thread_id,ids,id,threads"`
}

// AggregateResults gathers the results of threads.
var AggregateResults = Operation[AggregateInput, view.Aggregate]{
	Name: "aggregate_results", Title: "Gather results", Group: Threads, Effect: Looks,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in AggregateInput) (view.Aggregate, error) {
		all, err := c.View.Aggregate(ctx, in.ThreadIDs)
		if !by.Person {
			all.Results = view.BriefResults(all.Results)
		}
		return all, err
	},
}

// ReadTranscript reads what a thread did, a page at a time.
var ReadTranscript = Operation[view.TranscriptInput, view.TranscriptPage]{
	Name: "read_transcript", Title: "Read a transcript", Group: Threads, Effect: Looks, Untold: []string{"format"},
	Run: func(ctx context.Context, c *control.Controller, _ action.Caller, in view.TranscriptInput) (view.TranscriptPage, error) {
		return c.View.ReadTranscript(ctx, in)
	},
}

// ThreadHealth tells how the threads of a project are.
var ThreadHealth = Operation[health.Request, health.Report]{
	Name: "thread_health", Title: "Health of the threads", Group: Admin, Effect: Looks, Untold: []string{"active_days"},
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in health.Request) (health.Report, error) {
		return c.Health.Report(ctx, in, action.Told[health.Looked](by))
	},
}

// ReconcileThreads reports where registry, ledger and folders disagree, and mends it.
// It removes only what is worth nothing to anybody.
var ReconcileThreads = Operation[health.ReconcileInput, health.Reconciliation]{
	Name: "reconcile_threads", Title: "Compare registry, ledger and folders", Group: Admin, Effect: Idempotent,
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in health.ReconcileInput) (health.Reconciliation, error) {
		if in.Apply && by.InThread {
			return health.Reconciliation{}, tool.Faultf(tool.CodePermissionDenied, "a thread does not mend the records of threads").
				WithHint("call reconcile_threads without apply, and tell what it finds")
		}
		return c.Health.Reconcile(ctx, in, action.Told[health.Looked](by))
	},
}
