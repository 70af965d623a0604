package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// deletions is the part of a [Store] that takes threads away.
type deletions struct{ late *Store }

// Trees implements [store.Deletions].
func (s deletions) Trees(ctx context.Context, tops []thread.ID) (map[thread.ID][]thread.Record, error) {
	return ask(ctx, s.late, nil, func(now store.Store) (map[thread.ID][]thread.Record, error) { return now.Trees(ctx, tops) })
}

// BeginSweep implements [store.Sweeps].
func (s deletions) BeginSweep(ctx context.Context, now time.Time, interval, most time.Duration) (by time.Time, due bool, err error) {
	opened, err := s.late.Now(ctx)
	if err != nil || opened == nil {
		return by, false, err
	}
	return opened.BeginSweep(ctx, now, interval, most)
}

// Vacuum implements [store.Shrinker].
func (s deletions) Vacuum(ctx context.Context, alone bool) ([]store.Vacuumed, error) {
	return ask(ctx, s.late, nil, func(now store.Store) ([]store.Vacuumed, error) { return now.Vacuum(ctx, alone) })
}

// Expired implements [store.Deletions].
func (s deletions) Expired(ctx context.Context, e store.Expiry) ([]thread.Record, error) {
	return ask(ctx, s.late, nil, func(now store.Store) ([]thread.Record, error) { return now.Expired(ctx, e) })
}

// Delete implements [store.Deletions].
func (s deletions) Delete(ctx context.Context, sets [][]thread.ID, at time.Time) ([]error, error) {
	return ask(ctx, s.late, thread.ErrNotFound, func(now store.Store) ([]error, error) { return now.Delete(ctx, sets, at) })
}

// Deletions implements [store.Deletions].
func (s deletions) Deletions(ctx context.Context, f store.DeletionFilter) ([]store.Deletion, error) {
	return ask(ctx, s.late, nil, func(now store.Store) ([]store.Deletion, error) { return now.Deletions(ctx, f) })
}

// ForgetBudgets implements [store.Deletions].
func (s deletions) ForgetBudgets(ctx context.Context, ids []thread.ID, at time.Time) error {
	return tell(ctx, s.late, func(now store.Store) error { return now.ForgetBudgets(ctx, ids, at) })
}

// EndDeletions implements [store.Deletions].
func (s deletions) EndDeletions(ctx context.Context, ids []thread.ID) error {
	return tell(ctx, s.late, func(now store.Store) error { return now.EndDeletions(ctx, ids) })
}

// Gone implements [store.Deletions].
func (s deletions) Gone(ctx context.Context) (store.Gone, error) {
	return ask(ctx, s.late, nil, func(now store.Store) (store.Gone, error) { return now.Gone(ctx) })
}

// RestoreGone implements [store.Deletions].
func (s deletions) RestoreGone(ctx context.Context, g store.Gone) error {
	return tell(ctx, s.late, func(now store.Store) error { return now.RestoreGone(ctx, g) })
}

// ShowPlan implements [store.Deletions]. Where nothing can go, nothing is remembered.
func (s deletions) ShowPlan(ctx context.Context, key string, p store.ShownPlan) error {
	now, err := s.late.Now(ctx)
	if err != nil || now == nil {
		return err
	}
	return now.ShowPlan(ctx, key, p)
}

// ShownPlan implements [store.Deletions].
func (s deletions) ShownPlan(ctx context.Context, key string, at time.Time) (*store.ShownPlan, error) {
	return ask(ctx, s.late, nil, func(now store.Store) (*store.ShownPlan, error) { return now.ShownPlan(ctx, key, at) })
}
