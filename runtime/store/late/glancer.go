package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// glancer is the [store.Glancer] of a store.
type glancer struct{ late *Store }

// Glance implements [store.Glancer].
func (g glancer) Glance(ctx context.Context, most store.EndedMost) (store.Glance, error) {
	return ask(ctx, g.late, nil, func(now store.Store) (store.Glance, error) { return now.Glance(ctx, most) })
}

// Budgets implements [store.Glancer].
func (g glancer) Budgets(ctx context.Context, ids []thread.ID) ([]store.Budget, error) {
	return ask(ctx, g.late, nil, func(now store.Store) ([]store.Budget, error) { return now.Budgets(ctx, ids) })
}

// SetCounts implements [store.Glancer].
func (g glancer) SetCounts(ctx context.Context, id thread.ID) (store.SetCounts, error) {
	return ask(ctx, g.late, store.ErrNoSet, func(now store.Store) (store.SetCounts, error) { return now.SetCounts(ctx, id) })
}
