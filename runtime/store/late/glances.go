package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// glances is the [store.Glances] of a store.
type glances struct{ late *Store }

// Glance implements [store.Glances].
func (g glances) Glance(ctx context.Context, most store.EndedMost) (store.Glance, error) {
	return ask(ctx, g.late, nil, func(now store.Store) (store.Glance, error) { return now.Glance(ctx, most) })
}

// Budgets implements [store.Glances].
func (g glances) Budgets(ctx context.Context, ids []thread.ID) ([]store.Budget, error) {
	return ask(ctx, g.late, nil, func(now store.Store) ([]store.Budget, error) { return now.Budgets(ctx, ids) })
}

// SetCounts implements [store.Glances].
func (g glances) SetCounts(ctx context.Context, id thread.ID) (store.SetCounts, error) {
	return ask(ctx, g.late, store.ErrNoSet, func(now store.Store) (store.SetCounts, error) { return now.SetCounts(ctx, id) })
}
