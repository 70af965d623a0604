package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Post implements [store.Messages].
func (s *Store) Post(ctx context.Context, m thread.Message, bound store.NoteBound) (int, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (int, error) { return now.Post(ctx, m, bound) })
}

// Unread implements [store.Messages].
func (s *Store) Unread(ctx context.Context, reader thread.ID) ([]thread.Message, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]thread.Message, error) { return now.Unread(ctx, reader) })
}

// Ended implements [store.Messages].
func (s *Store) Ended(ctx context.Context, ids []thread.ID) ([]store.Ended, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]store.Ended, error) { return now.Ended(ctx, ids) })
}

// Deliver implements [store.Messages].
func (s *Store) Deliver(ctx context.Context, reader thread.ID, run thread.Run, ids []string, at time.Time) error {
	return tell(ctx, s, func(now store.Store) error { return now.Deliver(ctx, reader, run, ids, at) })
}

// EndReading implements [store.Messages].
func (s *Store) EndReading(ctx context.Context, reader thread.ID, run thread.Run, whatever bool, at time.Time) (bool, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (bool, error) { return now.EndReading(ctx, reader, run, whatever, at) })
}
