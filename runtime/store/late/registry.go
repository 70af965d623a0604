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

// SetProcess implements [store.Registry].
func (s *Store) SetProcess(ctx context.Context, id thread.ID, p thread.Process) error {
	return tell(ctx, s, func(now store.Store) error { return now.SetProcess(ctx, id, p) })
}

// Apply implements [store.Registry].
func (s *Store) Apply(ctx context.Context, c store.Change) (thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.Apply(ctx, c) })
}

// Link implements [store.Registry].
func (s *Store) Link(ctx context.Context, id, successor thread.ID, at time.Time) error {
	return tell(ctx, s, func(now store.Store) error { return now.Link(ctx, id, successor, at) })
}

// RecordCost implements [store.Registry].
func (s *Store) RecordCost(ctx context.Context, id thread.ID, c thread.Cost, contextTokens int64) error {
	return tell(ctx, s, func(now store.Store) error { return now.RecordCost(ctx, id, c, contextTokens) })
}

// RequestCancel implements [store.Registry].
func (s *Store) RequestCancel(ctx context.Context, id thread.ID, at time.Time) ([]thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) ([]thread.Record, error) { return now.RequestCancel(ctx, id, at) })
}

// Enqueue implements [store.Queue].
func (s *Store) Enqueue(ctx context.Context, id thread.ID, slots int, at time.Time) (thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.Enqueue(ctx, id, slots, at) })
}

// Return implements [store.Queue].
func (s *Store) Return(ctx context.Context, id thread.ID) (thread.Record, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.Return(ctx, id) })
}

// Occupants implements [store.Queue].
func (s *Store) Occupants(ctx context.Context) ([]thread.Record, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]thread.Record, error) { return now.Occupants(ctx) })
}

// Yield implements [store.Queue].
func (s *Store) Yield(ctx context.Context, id thread.ID, yielded bool) error {
	return tell(ctx, s, func(now store.Store) error { return now.Yield(ctx, id, yielded) })
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
