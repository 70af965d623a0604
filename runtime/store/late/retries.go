package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// retries is the [store.Retries] of a store.
type retries struct{ late *Store }

// DueRetries implements [store.Retries].
func (s retries) DueRetries(ctx context.Context, at time.Time, most int) (due []thread.Record, next time.Time, err error) {
	now, err := s.late.Now(ctx)
	if err != nil || now == nil {
		return nil, time.Time{}, err
	}
	return now.DueRetries(ctx, at, most)
}

// DropRetry implements [store.Retries].
func (s retries) DropRetry(ctx context.Context, id thread.ID, why string, at time.Time) (bool, error) {
	return ask(ctx, s.late, nil, func(now store.Store) (bool, error) { return now.DropRetry(ctx, id, why, at) })
}
