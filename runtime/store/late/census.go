package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// census is the [store.Census] of a store.
type census struct{ late *Store }

// Census implements [store.Census].
func (c census) Census(ctx context.Context) (store.Counts, error) {
	return ask(ctx, c.late, nil, func(now store.Store) (store.Counts, error) { return now.Census(ctx) })
}
