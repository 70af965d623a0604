package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// OpenRoot implements [store.Ledger].
func (s *Store) OpenRoot(ctx context.Context, id thread.ID, maxSpend thread.Micros, at time.Time) error {
	return tell(ctx, s, func(now store.Store) error { return now.OpenRoot(ctx, id, maxSpend, at) })
}

// Reserve implements [store.Ledger].
func (s *Store) Reserve(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error {
	return tell(ctx, s, func(now store.Store) error { return now.Reserve(ctx, child, parent, amount, at) })
}

// ReserveAfter implements [store.Ledger].
func (s *Store) ReserveAfter(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error {
	return tell(ctx, s, func(now store.Store) error { return now.ReserveAfter(ctx, child, parent, amount, at) })
}

// Budget implements [store.Ledger].
func (s *Store) Budget(ctx context.Context, id thread.ID) (store.Budget, error) {
	return ask(ctx, s, store.ErrNoBudget, func(now store.Store) (store.Budget, error) { return now.Budget(ctx, id) })
}

// Exposure implements [store.Ledger].
func (s *Store) Exposure(ctx context.Context, id thread.ID) (store.Exposure, error) {
	return ask(ctx, s, store.ErrNoBudget, func(now store.Store) (store.Exposure, error) { return now.Exposure(ctx, id) })
}

// Active implements [store.Ledger].
func (s *Store) Active(ctx context.Context) ([]store.Budget, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]store.Budget, error) { return now.Active(ctx) })
}

// Tree implements [store.Ledger].
func (s *Store) Tree(ctx context.Context, id thread.ID) (store.Budget, store.TreeSpend, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return store.Budget{}, store.TreeSpend{}, err
	}
	if now == nil {
		return store.Budget{}, store.TreeSpend{}, store.ErrNoBudget
	}
	return now.Tree(ctx, id)
}
