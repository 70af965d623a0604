package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// afterwards is the [store.Afterwards] of a store.
type afterwards struct {
	ledger  Database
	dialect Dialect
}

// SpendAfter implements [store.Afterwards]. The amount is kept with what those came to that
// are below the thread and have no row.
func (s afterwards) SpendAfter(ctx context.Context, id thread.ID, amount thread.Micros, at time.Time) error {
	err := s.ledger.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		row, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, id))
		if err != nil {
			return noBudget(err, id)
		}
		if row.Active || row.Gone+amount < 0 {
			return fmt.Errorf("it has not ended, or nothing of %s was added: %w", -amount, store.ErrNoBudget)
		}
		least, err := leastAbove(ctx, tx, s.dialect, id)
		if err != nil {
			return err
		}
		if least.Remaining() < amount && amount > 0 {
			return &store.InsufficientError{Parent: least.ThreadID, Requested: amount, Remaining: least.Remaining()}
		}
		_, err = tx.ExecContext(ctx, aboveSQL+`UPDATE budgets SET actual_spend = actual_spend + ?2,
			gone_spend = gone_spend + CASE WHEN thread_id = ?1 THEN CAST(?2 AS BIGINT) ELSE 0 END, updated_at = ?3
			WHERE thread_id IN (SELECT thread_id FROM above)`, id, int64(amount), millis(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("spend of %s after its end: %w", id, err)
	}
	return nil
}
