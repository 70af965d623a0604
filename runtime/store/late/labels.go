package late

import (
	"context"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Label implements [store.Labels].
func (s *Store) Label(ctx context.Context, id thread.ID, l store.LabelChange, at time.Time) (thread.Record, error) {
	return ask(ctx, s, fmt.Errorf("thread %s: %w", id, thread.ErrNotFound), func(now store.Store) (thread.Record, error) { return now.Label(ctx, id, l, at) })
}
