package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// selectBudget reads what scanBudget scans, in its order.
const selectBudget = `SELECT thread_id, coalesce(parent_id, ''), max_spend, reserved_spend, actual_spend, own_spend,
	status = 'active', created_at, updated_at FROM budgets`

const budgetSQL = selectBudget + " WHERE thread_id = ?"

// Budget implements [store.Ledger].
func (s *Store) Budget(ctx context.Context, id thread.ID) (b store.Budget, err error) {
	err = s.ledger.read(ctx, func(db *sql.DB) (err error) {
		b, err = scanBudget(db.QueryRowContext(ctx, budgetSQL, id))
		return noBudget(err, id)
	})
	return b, err
}

// Tree implements [store.Ledger].
func (s *Store) Tree(ctx context.Context, id thread.ID) (t store.TreeSpend, err error) {
	err = s.ledger.read(ctx, func(db *sql.DB) error {
		err := db.QueryRowContext(ctx, `WITH RECURSIVE subtree (thread_id) AS (
				VALUES (?1) UNION SELECT b.thread_id FROM budgets b JOIN subtree s ON b.parent_id = s.thread_id)
			SELECT coalesce(sum(own_spend), 0), coalesce(sum(reserved_spend) FILTER (WHERE thread_id = ?1), 0),
				count(*), count(*) FILTER (WHERE status = 'active')
			FROM budgets WHERE thread_id IN subtree`, id).Scan(&t.Actual, &t.Reserved, &t.Threads, &t.Active)
		if err == nil && t.Threads == 0 {
			err = sql.ErrNoRows
		}
		return noBudget(err, id)
	})
	return t, err
}

func scanBudget(r row) (store.Budget, error) {
	var b store.Budget
	var created, updated int64
	err := r.Scan(&b.ThreadID, &b.ParentID, &b.MaxSpend, &b.Reserved, &b.Actual, &b.Own, &b.Active, &created, &updated)
	if err != nil {
		return store.Budget{}, err
	}
	b.CreatedAt, b.UpdatedAt = fromMillis(created), fromMillis(updated)
	return b, nil
}

// noBudget names the thread when a query for its active budget found none.
func noBudget(err error, id thread.ID) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("thread %s: %w", id, store.ErrNoBudget)
	}
	return err
}
