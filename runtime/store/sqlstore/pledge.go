package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const pledgeSQL = `UPDATE budgets SET pledged_spend = ?1, updated_at = ?2
	WHERE thread_id = ?3 AND run = ?4 AND status = 'active' AND max_spend - actual_spend - reserved_spend >= ?1`

// Pledge implements [store.Runner]. It is not waited to disk: after a loss of
// power there is no call.
func (r *runner) Pledge(ctx context.Context, amount thread.Micros, at time.Time) error {
	id := r.id
	if amount < 0 {
		return fmt.Errorf("pledge by %s: %s is negative", id, amount)
	}
	change := func(b store.Budget) store.Budget {
		b.Pledged, b.UpdatedAt = amount, fromMillis(millis(at))
		return b
	}
	err := r.spendByOne(repeatable(ctx), Relaxed, change, pledgeSQL, []any{int64(amount), millis(at), id, r.run}, func(ctx context.Context, tx *sql.Tx) error {
		row, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, id))
		if err != nil {
			return noBudget(err, id)
		}
		if !row.Active {
			return noBudget(sql.ErrNoRows, id)
		}
		return &store.InsufficientError{Parent: id, Requested: amount, Remaining: row.Remaining() + row.Pledged}
	})
	if err != nil {
		return fmt.Errorf("pledge by %s: %w", id, err)
	}
	return nil
}
