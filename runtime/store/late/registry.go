package late

import (
	"context"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Get implements [store.Registry].
func (s *Store) Get(ctx context.Context, id thread.ID) (thread.Record, error) {
	return ask(ctx, s, fmt.Errorf("thread %s: %w", id, thread.ErrNotFound), func(now store.Store) (thread.Record, error) { return now.Get(ctx, id) })
}

// ByRequestKey implements [store.Registry].
func (s *Store) ByRequestKey(ctx context.Context, key string) (thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.ByRequestKey(ctx, key) })
}

// Descendants implements [store.Registry].
func (s *Store) Descendants(ctx context.Context, id thread.ID) ([]thread.Record, error) {
	return ask(ctx, s, fmt.Errorf("thread %s: %w", id, thread.ErrNotFound), func(now store.Store) ([]thread.Record, error) { return now.Descendants(ctx, id) })
}

// Link implements [store.Registry].
func (s *Store) Link(ctx context.Context, id, successor thread.ID, at time.Time) error {
	return tell(ctx, s, func(now store.Store) error { return now.Link(ctx, id, successor, at) })
}

// RequestCancel implements [store.Registry].
func (s *Store) RequestCancel(ctx context.Context, id thread.ID, by string, at time.Time) ([]thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) ([]thread.Record, error) { return now.RequestCancel(ctx, id, by, at) })
}

// Enqueue implements [store.Queue].
func (s *Store) Enqueue(ctx context.Context, id thread.ID, slots int, at time.Time) (thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.Enqueue(ctx, id, slots, at) })
}

// Occupants implements [store.Queue].
func (s *Store) Occupants(ctx context.Context) ([]thread.Record, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]thread.Record, error) { return now.Occupants(ctx) })
}

// Stats implements [store.Registry].
func (s *Store) Stats(ctx context.Context, since store.StatsSince) (store.Stats, error) {
	return ask(ctx, s, nil, func(now store.Store) (store.Stats, error) { return now.Stats(ctx, since) })
}

// Known implements [store.Registry].
func (s *Store) Known(ctx context.Context, ids []thread.ID) (map[thread.ID]bool, error) {
	return ask(ctx, s, nil, func(now store.Store) (map[thread.ID]bool, error) { return now.Known(ctx, ids) })
}

// QueueLoad implements [store.Queue].
func (s *Store) QueueLoad(ctx context.Context) (store.QueueLoad, error) {
	return ask(ctx, s, nil, func(now store.Store) (store.QueueLoad, error) { return now.QueueLoad(ctx) })
}

// Replace implements [store.Registry].
func (s *Store) Replace(ctx context.Context, id thread.ID, from, to thread.Run) (thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.Replace(ctx, id, from, to) })
}
