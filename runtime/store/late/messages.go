package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// messages is the [store.Messages] of a store.
type messages struct{ late *Store }

// Post implements [store.Messages].
func (s messages) Post(ctx context.Context, m thread.Message, bound store.NoteBound) (int, error) {
	return ask(ctx, s.late, thread.ErrNotFound, func(now store.Store) (int, error) { return now.Post(ctx, m, bound) })
}

// Unread implements [store.Messages].
func (s messages) Unread(ctx context.Context, reader thread.ID) ([]thread.Message, error) {
	return ask(ctx, s.late, nil, func(now store.Store) ([]thread.Message, error) { return now.Unread(ctx, reader) })
}

// Ended implements [store.Messages].
func (s messages) Ended(ctx context.Context, ids []thread.ID) ([]store.Ended, error) {
	return ask(ctx, s.late, nil, func(now store.Store) ([]store.Ended, error) { return now.Ended(ctx, ids) })
}

// Deliver implements [store.Messages].
func (s messages) Deliver(ctx context.Context, reader thread.ID, run thread.Run, ids []string, at time.Time) error {
	return tell(ctx, s.late, func(now store.Store) error { return now.Deliver(ctx, reader, run, ids, at) })
}

// EndReading implements [store.Messages].
func (s messages) EndReading(ctx context.Context, reader thread.ID, run thread.Run, whatever bool, at time.Time) (bool, error) {
	return ask(ctx, s.late, thread.ErrNotFound, func(now store.Store) (bool, error) { return now.EndReading(ctx, reader, run, whatever, at) })
}
