package storetest

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Any writes to threads as whatever run has them, for tests of something else.
type Any struct{ store.Store }

func (s Any) by(ctx context.Context, id thread.ID) store.Runner {
	rec, _ := s.Get(ctx, id) // without a row the write says so
	return s.Runner(id, rec.Run)
}

// Apply is that of [store.Runner].
func (s Any) Apply(ctx context.Context, c store.Change) (thread.Record, error) {
	return s.by(ctx, c.ID()).Apply(ctx, c)
}

// Return is that of [store.Runner].
func (s Any) Return(ctx context.Context, id thread.ID) (thread.Record, error) {
	return s.by(ctx, id).Return(ctx)
}

// SetProcess is that of [store.Runner].
func (s Any) SetProcess(ctx context.Context, id thread.ID, p thread.Process) error {
	return s.by(ctx, id).SetProcess(ctx, p)
}

// Yield is that of [store.Runner].
func (s Any) Yield(ctx context.Context, id thread.ID, yielded bool) error {
	return s.by(ctx, id).Yield(ctx, yielded)
}

// RecordCost is that of [store.Runner].
func (s Any) RecordCost(ctx context.Context, id thread.ID, c thread.Cost, contextTokens int64) error {
	return s.by(ctx, id).RecordCost(ctx, c, contextTokens)
}

// Ask is that of [store.Runner].
func (s Any) Ask(ctx context.Context, q thread.Question) error {
	return s.by(ctx, q.ThreadID).Ask(ctx, q)
}

// Raise is that of [store.Runner].
func (s Any) Raise(ctx context.Context, id thread.ID, to thread.Micros, at time.Time) error {
	return s.by(ctx, id).Raise(ctx, to, at)
}

// HandOver is that of [store.Runner].
func (s Any) HandOver(ctx context.Context, from, to thread.ID, at time.Time) (thread.Micros, error) {
	return s.by(ctx, from).HandOver(ctx, to, at)
}

// Pledge is that of [store.Runner].
func (s Any) Pledge(ctx context.Context, id thread.ID, amount thread.Micros, at time.Time) error {
	return s.by(ctx, id).Pledge(ctx, amount, at)
}

// Report is that of [store.Runner].
func (s Any) Report(ctx context.Context, id thread.ID, ownTotal thread.Micros, at time.Time) error {
	return s.by(ctx, id).Report(ctx, ownTotal, at)
}

// Settle is that of [store.Runner].
func (s Any) Settle(ctx context.Context, id thread.ID, at time.Time) error {
	return s.by(ctx, id).Settle(ctx, at)
}

// Register is [store.Register].
func (s Any) Register(ctx context.Context, n store.NewThread, claim func(thread.ID) error) (rec thread.Record, created bool, err error) {
	return store.Register(ctx, s.Store, n, claim)
}

// Admit is [store.Admit], for a new run.
func (s Any) Admit(
	ctx context.Context, slots int, at time.Time, claim func(thread.Record) error,
) (rec thread.Record, admitted bool, err error) {
	return store.Admit(ctx, s.Store, slots, at, thread.NewRun(), claim)
}

// As is s, written to as whatever run has the threads.
func As(s store.Store) Any { return Any{s} }
