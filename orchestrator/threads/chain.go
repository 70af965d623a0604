package threads

import (
	"context"
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Chain returns the chain of a thread, first to newest, as it truly is: the
// newest is settled when its process is gone.
func (t *Threads) Chain(ctx context.Context, id thread.ID) ([]thread.Record, error) {
	rec, err := t.LookAsked(ctx, id)
	if err != nil {
		return nil, err
	}
	return lineage.Chain(rec.ThreadID, t.Getter(ctx))
}

// ViaOf is how a thread came to be continued by the next of its chain. One that was
// resumed before it was time to try it again was resumed.
func ViaOf(before, next thread.Record) thread.Via {
	switch o := before.Outcome; {
	case before.Status == thread.Continued:
		return thread.ViaHandoff
	case o != nil && o.Retry != nil && !next.CreatedAt.Before(o.Retry.At):
		return thread.ViaRetry
	}
	return thread.ViaResume
}

// InChain reports whether a thread is one of a chain.
func InChain(chain []thread.Record, id thread.ID) bool {
	return slices.ContainsFunc(chain, func(link thread.Record) bool { return link.ThreadID == id })
}

// CostOf is the own cost of the threads of a chain.
func CostOf(chain []thread.Record) (sum thread.Cost) {
	for _, rec := range chain {
		sum = sum.Add(rec.Cost)
	}
	return sum
}

// ChainCost is the own cost of all threads of the chain of its newest; nil where
// that is the only one.
func (t *Threads) ChainCost(ctx context.Context, newest thread.Record) (*thread.Cost, error) {
	chain, err := t.chainTo(ctx, newest)
	if err != nil || newest.ContinuationOf == "" {
		return nil, err
	}
	sum := CostOf(chain)
	return &sum, nil
}

// Spending is [Threads.ChainCost], and what the threads of the chain and all below them have
// spent; tree is nil where nobody below has spent anything.
func (t *Threads) Spending(ctx context.Context, newest thread.Record) (own *thread.Cost, tree *thread.Micros, err error) {
	chain, err := t.chainTo(ctx, newest)
	if err != nil {
		return nil, nil, err
	}
	cost := CostOf(chain)
	if newest.ContinuationOf != "" {
		own = &cost
	}
	sum, err := t.SpentBy(ctx, chain)
	if err != nil || sum <= cost.Spend {
		return own, nil, err
	}
	return own, &sum, nil
}

// chainTo are the threads of the chain of its newest.
func (t *Threads) chainTo(ctx context.Context, newest thread.Record) ([]thread.Record, error) {
	if newest.ContinuationOf == "" {
		return []thread.Record{newest}, nil
	}
	return lineage.Chain(newest.ThreadID, t.Getter(ctx))
}

// SpentBy is what the threads of a chain and all below them have spent.
func (t *Threads) SpentBy(ctx context.Context, chain []thread.Record) (sum thread.Micros, err error) {
	for _, rec := range chain {
		_, tree, err := t.Store.Tree(ctx, rec.ThreadID)
		if err != nil && !errors.Is(err, store.ErrNoBudget) {
			return 0, err
		}
		sum += tree.Actual
	}
	return sum, nil
}
