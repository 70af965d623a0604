package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// check is made before each turn: limits, then whether the thread may go on at
// all. It returns the budget as it is now.
func (r *run) check(ctx context.Context) (store.Budget, error) {
	if ctx.Err() != nil {
		return store.Budget{}, context.Cause(ctx)
	}
	if err := r.Transcript.InPlace(); err != nil {
		return store.Budget{}, err
	}
	budget, err := r.Store.Budget(ctx, r.ID)
	if err != nil {
		return store.Budget{}, err
	}
	used := r.cost
	used.Spend = budget.Actual // what finished children spent counts too
	if over := limit.Check(r.meta.Limits, used, time.Since(r.began)); over != nil {
		return store.Budget{}, over
	}
	rec, err := r.Store.Get(ctx, r.ID)
	if err != nil {
		return store.Budget{}, err
	}
	switch {
	case rec.Status.Terminal():
		// Somebody took this process for dead, as when its folder was deleted: what
		// it still spent would be on nobody's account.
		return store.Budget{}, fmt.Errorf("thread %s is %s: %w", r.ID, rec.Status, thread.ErrSettled)
	case !rec.CancelRequestedAt.IsZero():
		return store.Budget{}, thread.ErrCancelled
	}
	return budget, nil
}
