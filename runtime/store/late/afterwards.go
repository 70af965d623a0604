package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// afterwards is the [store.Afterwards] of a store.
type afterwards struct{ late *Store }

// SpendAfter implements [store.Afterwards].
func (s afterwards) SpendAfter(ctx context.Context, id thread.ID, amount thread.Micros, at time.Time) error {
	return tell(ctx, s.late, func(now store.Store) error { return now.SpendAfter(ctx, id, amount, at) })
}
