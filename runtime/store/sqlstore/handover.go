package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// HandOver implements [store.Runner]. It is on disk when it returns.
func (r *runner) HandOver(ctx context.Context, to thread.ID, at time.Time) (left thread.Micros, err error) {
	from := r.id
	err = r.spend(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		old, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL+r.dialect.untilCommit(), from))
		if err != nil {
			return noBudget(err, from)
		}
		switch given, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, to)); {
		case err == nil:
			left = given.MaxSpend
			return sameHandOver(old, given)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		case !old.Active:
			return noBudget(sql.ErrNoRows, from)
		}
		left = max(0, old.Remaining()+old.Pledged)
		return handOver(ctx, tx, old, to, left, millis(at))
	})
	if err != nil {
		return 0, fmt.Errorf("hand over the budget of %s: %w", from, err)
	}
	return left, nil
}

// sameHandOver accepts the repetition of a handover, and no other budget that to
// may have.
func sameHandOver(from, to store.Budget) error {
	if from.Active || from.ThreadID == to.ThreadID || from.ParentID != to.ParentID {
		return fmt.Errorf("%s already has a budget of %s from %q", to.ThreadID, to.MaxSpend, to.ParentID)
	}
	return nil
}

// handOver splits a reservation in two, of which those above notice nothing, and
// settles the part that has been used.
func handOver(ctx context.Context, tx *sql.Tx, from store.Budget, to thread.ID, left thread.Micros, at int64) error {
	_, err := tx.ExecContext(ctx, "UPDATE budgets SET max_spend = max_spend - ?, successor_id = ? WHERE thread_id = ?",
		int64(left), to, from.ThreadID)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO budgets (thread_id, parent_id, max_spend, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?)`, to, orNull(from.ParentID), int64(left), at, at)
	if err != nil {
		return err
	}
	return settle(ctx, tx, from.ThreadID, at)
}
