package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// latest is the [store.Latest] of a store.
type latest struct{ late *Store }

// Latest implements [store.Latest].
func (l latest) Latest(ctx context.Context, directive string, of thread.ID) (thread.Record, error) {
	return ask(ctx, l.late, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return now.Latest(ctx, directive, of) })
}
