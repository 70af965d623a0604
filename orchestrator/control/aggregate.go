package control

import (
	"context"
	"fmt"
	"maps"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Aggregate gathers the results of threads and sums what they used. An id that
// names no thread, among others that do, has that as its result.
func (c *Controller) Aggregate(ctx context.Context, ids []thread.ID) (Aggregate, error) {
	if len(ids) == 0 {
		return Aggregate{}, tool.Faultf(tool.CodeBadArguments, "thread_ids is empty; name at least one thread")
	}
	rows, unknown, err := c.Threads.LookAll(ctx, ids)
	if err != nil {
		return Aggregate{}, threads.Fault(err)
	}
	a := Aggregate{Success: len(unknown) == 0, Results: make(map[thread.ID]Result, len(ids))}
	named := make(map[thread.ID]thread.Record, len(rows)) // by the id that carries the asked one on
	for id, rec := range rows {
		a.Results[id] = result(id, rec)
		a.Success = a.Success && rec.Status == thread.Completed
		named[rec.ThreadID] = rec
	}
	if err := c.addChainCosts(ctx, a.Results, rows); err != nil {
		return Aggregate{}, threads.Fault(err)
	}
	if a.Totals, err = c.totals(ctx, named); err != nil {
		return Aggregate{}, threads.Fault(err)
	}
	maps.Copy(a.Results, c.unknownResults(ctx, unknown))
	a.States = statesOf(a.Results)
	return a, nil
}

// totals sums threads, each with those that it carries on. The tree of one that
// lies below another is part of that one's.
func (c *Controller) totals(ctx context.Context, named map[thread.ID]thread.Record) (Totals, error) {
	t := Totals{Threads: len(named), ByStatus: map[thread.State]int{}}
	isNamed := func(id thread.ID) bool { _, yes := named[id]; return yes }
	for id, rec := range named {
		t.ByStatus[rec.Status]++
		chain, err := lineage.Chain(id, c.Threads.Getter(ctx))
		if err != nil {
			return Totals{}, err
		}
		t.Cost = t.Cost.Add(threads.CostOf(chain))
		counted, err := lineage.IsBelowAny(id, isNamed, c.Threads.Getter(ctx))
		if err != nil {
			return Totals{}, err
		}
		if counted {
			continue
		}
		spent, err := c.Threads.SpentBy(ctx, chain)
		if err != nil {
			return Totals{}, err
		}
		t.TreeSpend += spent
	}
	return t, nil
}

// notFound stands for the state of a thread that there is none of.
const notFound thread.State = "not_found"

// unknownResults are the results of ids that name no thread.
func (c *Controller) unknownResults(ctx context.Context, ids []thread.ID) map[thread.ID]Result {
	results := make(map[thread.ID]Result, len(ids))
	for _, id := range ids {
		results[id] = Result{
			Status: notFound, Nearest: c.Threads.Nearest(ctx, id),
			Error: fmt.Sprintf("%v: %s; list_threads shows the threads of this project", thread.ErrNotFound, id),
		}
	}
	return results
}

// statesOf are the states of several threads at one glance.
func statesOf(results map[thread.ID]Result) map[thread.ID]thread.State {
	if len(results) < 2 {
		return nil
	}
	states := make(map[thread.ID]thread.State, len(results))
	for id, r := range results {
		states[id] = r.Status
	}
	return states
}
