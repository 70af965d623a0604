package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// runner is a [store.Runner] of the store that may come to be.
type runner struct {
	late *Store
	id   thread.ID
	run  thread.Run
}

// Runner implements [store.Registry].
func (s *Store) Runner(id thread.ID, run thread.Run) store.Runner { return &runner{s, id, run} }

// Of implements [store.Runner].
func (r *runner) Of() (thread.ID, thread.Run) { return r.id, r.run }

func (r *runner) of(now store.Store) store.Runner { return now.Runner(r.id, r.run) }

// Apply implements [store.Runner].
func (r *runner) Apply(ctx context.Context, c store.Change) (thread.Record, error) {
	return ask(ctx, r.late, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return r.of(now).Apply(ctx, c) })
}

// Return implements [store.Runner].
func (r *runner) Return(ctx context.Context) (thread.Record, error) {
	return ask(ctx, r.late, thread.ErrNotFound, func(now store.Store) (thread.Record, error) { return r.of(now).Return(ctx) })
}

// SetProcess implements [store.Runner].
func (r *runner) SetProcess(ctx context.Context, p thread.Process) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).SetProcess(ctx, p) })
}

// Yield implements [store.Runner].
func (r *runner) Yield(ctx context.Context, yielded bool) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).Yield(ctx, yielded) })
}

// RecordCost implements [store.Runner].
func (r *runner) RecordCost(ctx context.Context, c thread.Cost, contextTokens int64) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).RecordCost(ctx, c, contextTokens) })
}

// Ask implements [store.Runner].
func (r *runner) Ask(ctx context.Context, q thread.Question) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).Ask(ctx, q) })
}

// Raise implements [store.Runner].
func (r *runner) Raise(ctx context.Context, to thread.Micros, at time.Time) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).Raise(ctx, to, at) })
}

// HandOver implements [store.Runner].
func (r *runner) HandOver(ctx context.Context, to thread.ID, at time.Time) (thread.Micros, error) {
	return ask(ctx, r.late, thread.ErrNotFound, func(now store.Store) (thread.Micros, error) { return r.of(now).HandOver(ctx, to, at) })
}

// Pledge implements [store.Runner].
func (r *runner) Pledge(ctx context.Context, amount thread.Micros, at time.Time) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).Pledge(ctx, amount, at) })
}

// Report implements [store.Runner].
func (r *runner) Report(ctx context.Context, ownTotal thread.Micros, at time.Time) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).Report(ctx, ownTotal, at) })
}

// Settle implements [store.Runner].
func (r *runner) Settle(ctx context.Context, at time.Time) error {
	return tell(ctx, r.late, func(now store.Store) error { return r.of(now).Settle(ctx, at) })
}
