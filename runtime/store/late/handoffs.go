package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// handoffs is the [store.Handoffs] of a store.
type handoffs struct{ late *Store }

// AskHandoff implements [store.Handoffs].
func (s handoffs) AskHandoff(ctx context.Context, id thread.ID, r thread.HandoffRequest) error {
	return tell(ctx, s.late, func(now store.Store) error { return now.AskHandoff(ctx, id, r) })
}

// AskedHandoff implements [store.Handoffs].
func (s handoffs) AskedHandoff(ctx context.Context, id thread.ID) (*thread.HandoffRequest, error) {
	return ask(ctx, s.late, thread.ErrNotFound, func(now store.Store) (*thread.HandoffRequest, error) { return now.AskedHandoff(ctx, id) })
}
