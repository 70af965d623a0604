package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// runner is a [store.Runner].
type runner struct {
	*Store
	id  thread.ID
	run thread.Run
}

// Runner implements [store.Registry].
func (s *Store) Runner(id thread.ID, run thread.Run) store.Runner { return &runner{s, id, run} }

// Of implements [store.Runner].
func (r *runner) Of() (thread.ID, thread.Run) { return r.id, r.run }

// ownRun is the condition that a row is that of a run, or of none yet.
const ownRun = `run IN ('', ?)`

// owns reports whether a row with this run is the runner's to write.
func (r *runner) owns(run thread.Run) bool { return run == "" || run == r.run }

func fenced(id thread.ID) error { return fmt.Errorf("thread %s: %w", id, store.ErrFenced) }

// Replace implements [store.Registry]. It is on disk when it returns: a run that was
// replaced must not come back with a loss of power.
func (s *Store) Replace(ctx context.Context, id thread.ID, from, to thread.Run) (rec thread.Record, err error) {
	r := &runner{s, id, to}
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		rec, err = scanRecord(tx.QueryRowContext(ctx, `UPDATE threads SET run = ?, updated_at = ?, `+newWrite+`
			WHERE thread_id = ? AND run = ? AND status IN ('created', 'running') RETURNING `+columns, to, millis(s.now()), id, from))
		if errors.Is(err, sql.ErrNoRows) {
			return (&runner{s, id, from}).refused(ctx, tx, "")
		}
		return err
	})
	if err == nil {
		err = r.takeBudget(ctx)
	}
	if err != nil {
		return thread.Record{}, fmt.Errorf("replace the run: %w", err)
	}
	return rec, nil
}

// spend writes to the ledger as this run. A budget that another run of the thread has
// written to is taken over first, where the registry says that this one came after it.
func (r *runner) spend(ctx context.Context, d Durability, f func(context.Context, *sql.Tx) error) error {
	if err := r.mayLackRun(ctx); err != nil {
		return err
	}
	errOther := errors.New("the budget is another run's")
	for {
		err := r.ledger.Write(ctx, d, func(ctx context.Context, tx *sql.Tx) error {
			run, known, err := budgetRun(ctx, tx, r.id)
			if err != nil {
				return err
			}
			if known && run != r.run {
				return errOther
			}
			return f(ctx, tx)
		})
		if !errors.Is(err, errOther) {
			return err
		}
		if err := r.takeBudget(ctx); err != nil {
			return err
		}
	}
}

// spendByOne writes to the ledger as this run by one statement, which changes the
// thread's budget where that has this run and the change is legal. Where it changes
// nothing it is run again in a transaction of spend, and then why says what to make of
// that. Change does to a row that is remembered what the statement does.
func (r *runner) spendByOne(
	ctx context.Context, level Durability, change func(store.Budget) store.Budget, query string, args []any, why func(context.Context, *sql.Tx) error,
) error {
	if err := r.mayLackRun(ctx); err != nil {
		return err
	}
	done, err := update(ctx, r.ledger, level, Question{budgetSQL, string(r.id)}, change, query, args...)
	if done || err != nil {
		return err
	}
	return r.spend(ctx, level, func(ctx context.Context, tx *sql.Tx) error {
		changed, err := changeIn(ctx, tx, query, args...)
		if err != nil || changed {
			return err
		}
		return why(ctx, tx)
	})
}

// runOf is the run that a thread was registered with, whose budget is then made for it:
// who makes the budget holds the life of that run, so that it cannot be replaced
// meanwhile. It is empty where there is no such row, and the first who writes to the
// budget takes it.
func (s *Store) runOf(ctx context.Context, id thread.ID) thread.Run {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return ""
	}
	return rec.Run
}

// mayLackRun refuses who names no run where the registry has one: an older budget has
// none before the first write to it.
func (r *runner) mayLackRun(ctx context.Context) error {
	if r.run != "" {
		return nil
	}
	rec, err := r.Get(ctx, r.id)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		return nil
	case err == nil && !r.owns(rec.Run):
		return fenced(r.id)
	}
	return err
}

// takeBudget makes the budget of the thread that of this run, unless that was replaced.
// The run that the ledger has is read before the registry is asked: whoever replaces
// this one meanwhile has changed the ledger, or will.
func (r *runner) takeBudget(ctx context.Context) error {
	for {
		var before thread.Run
		var known bool
		err := r.ledger.Read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
			before, known, err = budgetRun(ctx, db, r.id)
			return err
		})
		if err != nil || !known || before == r.run {
			return err
		}
		rec, err := r.Get(ctx, r.id)
		if err != nil {
			return err
		}
		if !r.owns(rec.Run) {
			return fenced(r.id)
		}
		taken, err := r.replaceBudget(ctx, before)
		if err != nil || taken {
			return err
		}
	}
}

func (r *runner) replaceBudget(ctx context.Context, before thread.Run) (taken bool, err error) {
	return change(ctx, r.ledger, Relaxed, "UPDATE budgets SET run = ? WHERE thread_id = ? AND run = ?", r.run, r.id, before)
}

// budgetRun is the run of a budget, and whether there is one.
func budgetRun(ctx context.Context, q rowQuerier, id thread.ID) (run thread.Run, known bool, err error) {
	err = q.QueryRowContext(ctx, "SELECT run FROM budgets WHERE thread_id = ?", id).Scan(&run)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return run, err == nil, err
}
