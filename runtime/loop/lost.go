package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// tenure is that a run has its thread, or has lost it.
type tenure struct{ *run }

// isOthers reports whether another run has the thread.
func (r tenure) isOthers(rec thread.Record) bool {
	_, own := r.Runner.Of()
	return rec.Run != "" && rec.Run != own
}

// lost says that another run has the thread, which goes on, or that there is no such thread:
// a standby was promoted that had not seen this run begin. It is nil while the thread is this
// run's, when that cannot be told, and when the thread has ended, so that nothing of it may
// be left.
func (r tenure) lost(ctx context.Context) error {
	rec, err := r.Store.Get(ctx, r.ID)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		return err
	case err == nil && r.isOthers(rec) && !rec.Status.Terminal():
		return fmt.Errorf("thread %s: %w", r.ID, store.ErrFenced)
	}
	return nil
}

// leaveToOthers ends a run that has lost its thread: the other run has what runs below the
// thread, and what its tools have started. The spend of this one is on no account, so the
// log says it.
func (r tenure) leaveToOthers(ctx context.Context, lost error, o thread.Outcome) (thread.Record, error) {
	r.Log.Error().Err(lost).Str("status", string(o.State)).Int("lost_turns", r.cost.Turns).Str("lost_spend", r.cost.Spend.String()).
		Msg("this run has lost its thread; nothing of it is recorded, and what it has spent is on no account")
	r.passOn(ctx, thread.Record{}, lost)
	return thread.Record{}, fmt.Errorf("finish thread %s: %w", r.ID, lost)
}
