package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// AskHandoff implements [store.Handoffs].
func (s *Store) AskHandoff(ctx context.Context, id thread.ID, r thread.HandoffRequest) error {
	return tell(ctx, s, func(now store.Store) error { return now.AskHandoff(ctx, id, r) })
}

// AskedHandoff implements [store.Handoffs].
func (s *Store) AskedHandoff(ctx context.Context, id thread.ID) (*thread.HandoffRequest, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (*thread.HandoffRequest, error) { return now.AskedHandoff(ctx, id) })
}
