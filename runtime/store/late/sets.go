package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// OpenSet implements [store.Sets].
func (s *Store) OpenSet(ctx context.Context, id thread.ID, run thread.Run, n store.NewSet, at time.Time) (thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.OpenSet(ctx, id, run, n, at) })
}

// Set implements [store.Sets].
func (s *Store) Set(ctx context.Context, id thread.ID) (store.Set, error) {
	return ask(ctx, s, store.ErrNoSet, func(now store.Store) (store.Set, error) { return now.Set(ctx, id) })
}

// LastSet implements [store.Sets].
func (s *Store) LastSet(ctx context.Context, scope, content string) (store.Set, error) {
	return ask(ctx, s, store.ErrNoSet, func(now store.Store) (store.Set, error) { return now.LastSet(ctx, scope, content) })
}

// Working implements [store.Sets].
func (s *Store) Working(ctx context.Context) ([]thread.ID, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]thread.ID, error) { return now.Working(ctx) })
}

// Entries implements [store.Sets].
func (s *Store) Entries(ctx context.Context, id thread.ID, from, most int) ([]store.Entry, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]store.Entry, error) { return now.Entries(ctx, id, from, most) })
}

// NextEntry implements [store.Sets].
func (s *Store) NextEntry(ctx context.Context, id thread.ID) (e store.Entry, waits bool, err error) {
	now, err := s.Now(ctx)
	if err != nil || now == nil {
		return e, false, err
	}
	return now.NextEntry(ctx, id)
}

// RefuseEntry implements [store.Sets].
func (s *Store) RefuseEntry(ctx context.Context, id thread.ID, position int, why thread.Problem, at time.Time) error {
	return tell(ctx, s, func(now store.Store) error { return now.RefuseEntry(ctx, id, position, why, at) })
}

// Completed implements [store.Sets].
func (s *Store) Completed(ctx context.Context, scope string, keys []string) (map[string]thread.ID, error) {
	return ask(ctx, s, nil, func(now store.Store) (map[string]thread.ID, error) { return now.Completed(ctx, scope, keys) })
}
