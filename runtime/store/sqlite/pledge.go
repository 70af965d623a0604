package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Pledge implements [store.Runner]. It is not waited to disk: after a loss of
// power there is no call.
func (r *runner) Pledge(ctx context.Context, amount thread.Micros, at time.Time) error {
	id := r.id
	if amount < 0 {
		return fmt.Errorf("pledge by %s: %s is negative", id, amount)
	}
	err := r.spend(ctx, relaxed, func(ctx context.Context, tx *sql.Tx) error {
		row, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, id))
		switch left := row.Remaining() + row.Pledged; {
		case err != nil:
			return noBudget(err, id)
		case !row.Active:
			return noBudget(sql.ErrNoRows, id)
		case left < amount:
			return &store.InsufficientError{Parent: id, Requested: amount, Remaining: left}
		}
		_, err = tx.ExecContext(ctx, "UPDATE budgets SET pledged_spend = ?, updated_at = ? WHERE thread_id = ?",
			int64(amount), millis(at), id)
		return err
	})
	if err != nil {
		return fmt.Errorf("pledge by %s: %w", id, err)
	}
	return nil
}
