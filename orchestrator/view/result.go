package view

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ResultOf tells about the asked thread, or the newest of its chain.
func ResultOf(asked thread.ID, rec thread.Record) Result {
	r := Result{Status: rec.Status, Queued: rec.Queued(), Cost: rec.Cost, End: endOf(rec)}
	if rec.ThreadID != asked {
		r.ResolvedThreadID = rec.ThreadID
	}
	return r
}

// AddChainCosts adds to the results of threads what their chains have cost, and what was spent
// with all below them.
func (v *View) AddChainCosts(ctx context.Context, results map[thread.ID]Result, rows map[thread.ID]thread.Record) error {
	for id, r := range results {
		var err error
		if r.ChainCost, r.TreeSpend, err = v.Threads.Spending(ctx, rows[id]); err != nil {
			return err
		}
		results[id] = r
	}
	return nil
}

// UnknownResults are the results of ids that name no thread.
func (v *View) UnknownResults(ctx context.Context, ids []thread.ID) map[thread.ID]Result {
	results := make(map[thread.ID]Result, len(ids))
	near := v.Threads.NearestOf(ctx, ids...)
	for _, id := range ids {
		results[id] = Result{
			Status: threads.NotFound, Nearest: near[id],
			End: End{Error: fmt.Sprintf("%v: %s; list_threads shows the threads of this project", thread.ErrNotFound, id)},
		}
	}
	return results
}

// StatesOf are the states of several threads at one glance.
func StatesOf(results map[thread.ID]Result) map[thread.ID]thread.State {
	if len(results) < 2 {
		return nil
	}
	states := make(map[thread.ID]thread.State, len(results))
	for id, r := range results {
		states[id] = r.Status
	}
	return states
}

// problemOf is what went wrong with a thread, as text and in full.
func problemOf(o *thread.Outcome) (string, *thread.Problem) {
	if o == nil || o.Error == nil {
		return "", nil
	}
	return o.Error.Message, o.Error
}
