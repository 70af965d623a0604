package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// budgetColumns is what scanBudget reads, in its order.
const budgetColumns = `thread_id, coalesce(parent_id, ''), coalesce(successor_id, ''), max_spend, reserved_spend, actual_spend, own_spend, gone_spend, pledged_spend,
	status = 'active', created_at, updated_at`

const selectBudget = "SELECT " + budgetColumns + " FROM budgets"

const budgetSQL = selectBudget + " WHERE thread_id = ?"

// treeSQL reads what scanTree scans, in its order.
const treeSQL = `WITH RECURSIVE subtree (thread_id) AS (
		SELECT thread_id FROM budgets WHERE thread_id = ?1
		UNION SELECT b.thread_id FROM budgets b JOIN subtree s ON b.parent_id = s.thread_id),
	tree (spent, threads, active) AS (
		SELECT sum(own_spend + gone_spend), count(*), count(*) FILTER (WHERE status = 'active') FROM budgets
		WHERE thread_id IN (SELECT thread_id FROM subtree))
	SELECT spent, threads, active, ` + budgetColumns + ` FROM budgets, tree WHERE thread_id = ?1`

// Budget implements [store.Ledger].
func (s *Store) Budget(ctx context.Context, id thread.ID) (store.Budget, error) {
	b, err := recall(ctx, s.ledger, budgetSQL, id, func(r row) (store.Budget, error) { return scanBudget(r) })
	return b, noBudget(err, id)
}

// Tree implements [store.Ledger].
func (s *Store) Tree(ctx context.Context, id thread.ID) (store.Budget, store.TreeSpend, error) {
	t, err := recall(ctx, s.ledger, treeSQL, id, scanTree)
	return t.top, t.sum, noBudget(err, id)
}

// exposureSQL finds the root above a thread, those it continues and those that
// continue it, and sums them up.
const exposureSQL = `WITH RECURSIVE up (thread_id, parent_id) AS (
		SELECT thread_id, parent_id FROM budgets WHERE thread_id = ?1 UNION
		SELECT b.thread_id, b.parent_id FROM budgets b JOIN up ON b.thread_id = up.parent_id),
	earlier (thread_id) AS (
		SELECT thread_id FROM up WHERE parent_id IS NULL UNION
		SELECT b.thread_id FROM budgets b JOIN earlier e ON b.successor_id = e.thread_id),
	chain (thread_id) AS (
		SELECT thread_id FROM earlier UNION
		SELECT b.successor_id FROM budgets b JOIN chain c USING (thread_id) WHERE b.successor_id IS NOT NULL)
	SELECT (SELECT thread_id FROM earlier e WHERE NOT EXISTS (SELECT 1 FROM budgets p WHERE p.successor_id = e.thread_id) LIMIT 1),
		sum(CASE WHEN status = 'active' AND max_spend > actual_spend + reserved_spend THEN max_spend ELSE actual_spend + reserved_spend END),
		max(CASE WHEN status = 'active' OR reserved_spend > 0 THEN 1 ELSE 0 END)
	FROM budgets WHERE thread_id IN (SELECT thread_id FROM chain) HAVING count(*) > 0`

// Exposure implements [store.Ledger].
func (s *Store) Exposure(ctx context.Context, id thread.ID) (store.Exposure, error) {
	x, err := recall(ctx, s.ledger, exposureSQL, id, func(r row) (x store.Exposure, err error) {
		return x, r.Scan(&x.Root, &x.Most, &x.Open)
	})
	return x, noBudget(err, id)
}

// tree is what one query tells of a thread's budget and those below it.
type tree struct {
	top store.Budget
	sum store.TreeSpend
}

func scanTree(r row) (t tree, err error) {
	t.top, err = scanBudget(r, &t.sum.Actual, &t.sum.Threads, &t.sum.Active)
	t.sum.Reserved = t.top.Reserved
	return t, err
}

// scanBudget reads a row of the ledger, and the columns before it.
func scanBudget(r row, before ...any) (store.Budget, error) {
	var b store.Budget
	var created, updated int64
	err := r.Scan(append(before,
		&b.ThreadID, &b.ParentID, &b.Successor, &b.MaxSpend, &b.Reserved, &b.Actual, &b.Own, &b.Gone, &b.Pledged, &b.Active, &created, &updated)...)
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
