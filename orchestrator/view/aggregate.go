package view

import (
	"context"
	"maps"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Aggregate gathers the results of threads and sums what they used. An id that
// names no thread, among others that do, has that as its result.
func (v *View) Aggregate(ctx context.Context, ids []thread.ID) (Aggregate, error) {
	if len(ids) == 0 {
		return Aggregate{}, tool.Faultf(tool.CodeBadArguments, "thread_ids is empty; name at least one thread")
	}
	rows, unknown, err := v.Threads.LookAll(ctx, ids)
	if err != nil {
		return Aggregate{}, threads.Fault(err)
	}
	a := Aggregate{Success: len(unknown) == 0, Results: make(map[thread.ID]Result, len(ids))}
	named := make(map[thread.ID]thread.Record, len(rows)) // by id, successors in place of the asked
	for id, rec := range rows {
		a.Results[id] = ResultOf(id, rec)
		a.Success = a.Success && rec.Status == thread.Completed
		named[rec.ThreadID] = rec
	}
	if err := v.AddChainCosts(ctx, a.Results, rows); err != nil {
		return Aggregate{}, threads.Fault(err)
	}
	if a.Totals, err = v.totals(ctx, named); err != nil {
		return Aggregate{}, threads.Fault(err)
	}
	maps.Copy(a.Results, v.UnknownResults(ctx, unknown))
	a.States = StatesOf(a.Results)
	return a, nil
}

// totals sums threads, each with those that it continues. The tree of one that
// lies below another is part of that one's.
func (v *View) totals(ctx context.Context, named map[thread.ID]thread.Record) (Totals, error) {
	t := Totals{Threads: len(named), ByStatus: map[thread.State]int{}}
	isNamed := func(id thread.ID) bool { _, yes := named[id]; return yes }
	for id, rec := range named {
		t.ByStatus[rec.Status]++
		chain, err := lineage.Chain(id, v.Threads.Getter(ctx))
		if err != nil {
			return Totals{}, err
		}
		t.Cost = t.Cost.Add(threads.CostOf(chain))
		counted, err := lineage.IsBelowAny(id, isNamed, v.Threads.Getter(ctx))
		if err != nil {
			return Totals{}, err
		}
		if counted {
			continue
		}
		spent, err := v.Threads.SpentBy(ctx, chain)
		if err != nil {
			return Totals{}, err
		}
		t.TreeSpend += spent
	}
	return t, nil
}
