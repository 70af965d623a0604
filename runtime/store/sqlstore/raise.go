package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Raise implements [store.Runner]. The loss of the parent and the gain of the
// thread are one transaction, which is on disk when it returns.
func (r *runner) Raise(ctx context.Context, to thread.Micros, at time.Time) error {
	id := r.id
	err := r.spend(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		row, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, id))
		if err != nil {
			return noBudget(err, id)
		}
		more := to - row.MaxSpend
		switch {
		case !row.Active:
			return noBudget(sql.ErrNoRows, id)
		case more <= 0:
			return nil
		case row.ParentID != "":
			if err := hold(ctx, tx, row.ParentID, more, at); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "UPDATE budgets SET max_spend = ?, updated_at = ? WHERE thread_id = ?", int64(to), millis(at), id)
		return err
	})
	if err != nil {
		return fmt.Errorf("raise budget of %s: %w", id, err)
	}
	return nil
}
