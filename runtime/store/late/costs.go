package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// costs is the [store.Costs] of a store.
type costs struct{ late *Store }

// Costs implements [store.Costs].
func (c costs) Costs(ctx context.Context, q store.CostQuery) ([]store.CostSum, error) {
	return ask(ctx, c.late, nil, func(now store.Store) ([]store.CostSum, error) { return now.Costs(ctx, q) })
}
