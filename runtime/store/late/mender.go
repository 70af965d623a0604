package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// mender mends in the store, if there is one by then.
type mender struct{ *Store }

// mending is the part of a [Store] that mends.
type mending struct{ late *Store }

// Mend implements [store.Store].
func (m mending) Mend() store.Mender { return mender{m.late} }

// Relate implements [store.Mender].
func (m mender) Relate(ctx context.Context, id thread.ID, was, now store.Relatives) (bool, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (bool, error) { return open.Mend().Relate(ctx, id, was, now) })
}

// Correct implements [store.Mender].
func (m mender) Correct(ctx context.Context, rec thread.Record) (bool, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (bool, error) { return open.Mend().Correct(ctx, rec) })
}

// MarkGone implements [store.Mender].
func (m mender) MarkGone(ctx context.Context, id thread.ID, since time.Time) (bool, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (bool, error) { return open.Mend().MarkGone(ctx, id, since) })
}

// Budgets implements [store.Mender].
func (m mender) Budgets(ctx context.Context, ids []thread.ID) (map[thread.ID]store.Budget, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (map[thread.ID]store.Budget, error) { return open.Mend().Budgets(ctx, ids) })
}

// Release implements [store.Mender].
func (m mender) Release(ctx context.Context, id thread.ID, at time.Time) (bool, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (bool, error) { return open.Mend().Release(ctx, id, at) })
}

// Recount implements [store.Mender].
func (m mender) Recount(ctx context.Context, id thread.ID, was, own thread.Micros) (bool, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (bool, error) { return open.Mend().Recount(ctx, id, was, own) })
}

// Miscounted implements [store.Mender].
func (m mender) Miscounted(ctx context.Context) ([]thread.ID, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) ([]thread.ID, error) { return open.Mend().Miscounted(ctx) })
}

// AddUp implements [store.Mender].
func (m mender) AddUp(ctx context.Context) (bool, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (bool, error) { return open.Mend().AddUp(ctx) })
}

// TrimLogs implements [store.Mender].
func (m mender) TrimLogs(ctx context.Context) (int64, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) (int64, error) { return open.Mend().TrimLogs(ctx) })
}

// DropAside implements [store.Mender].
func (m mender) DropAside(ctx context.Context, keep int) ([]string, error) {
	return ask(ctx, m.Store, nil, func(open store.Store) ([]string, error) { return open.Mend().DropAside(ctx, keep) })
}
