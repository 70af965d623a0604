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

// aboveSQL names the thread ?1 and, past those that are settled, its ancestors up
// to the first active one: all that count what a child of the thread holds.
const aboveSQL = `WITH RECURSIVE above (thread_id) AS (
	SELECT thread_id FROM budgets WHERE thread_id = ?1 UNION
	SELECT b.parent_id FROM budgets b JOIN above USING (thread_id) WHERE b.status = 'settled' AND b.parent_id IS NOT NULL) `

// leastSQL is the budget of them that has the least left.
const leastSQL = selectBudget + ` WHERE thread_id IN (SELECT thread_id FROM above) ORDER BY max_spend - actual_spend - reserved_spend - pledged_spend LIMIT 1`

// leastAbove is the budget of them that has the least left. All of them stay as they are
// until the transaction commits.
func leastAbove(ctx context.Context, tx *sql.Tx, d Dialect, id thread.ID) (store.Budget, error) {
	if kept := d.untilCommit(); kept != "" {
		_, err := tx.ExecContext(ctx, aboveSQL+"SELECT 1 FROM budgets WHERE thread_id IN (SELECT thread_id FROM above)"+kept, id)
		if err != nil {
			return store.Budget{}, err
		}
	}
	least, err := scanBudget(tx.QueryRowContext(ctx, aboveSQL+leastSQL, id))
	return least, noBudget(err, id)
}

// ReserveAfter implements [store.Ledger]. The reservation is on disk when it
// returns.
func (s *Store) ReserveAfter(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error {
	return s.reserve(ctx, child, parent, amount, at, s.holdAbove)
}

// holdAbove adds amount to what is held below a parent that has ended, at all
// that count it, if each of them has that much left.
func (s *Store) holdAbove(ctx context.Context, tx *sql.Tx, parent thread.ID, amount thread.Micros, at time.Time) error {
	least, err := leastAbove(ctx, tx, s.dialect, parent)
	if err != nil {
		return err
	}
	if least.Remaining() < amount {
		return &store.InsufficientError{Parent: least.ThreadID, Requested: amount, Remaining: least.Remaining()}
	}
	_, err = tx.ExecContext(ctx, aboveSQL+`UPDATE budgets SET reserved_spend = reserved_spend + ?2, updated_at = ?3
		WHERE thread_id IN (SELECT thread_id FROM above)`, parent, int64(amount), millis(at))
	return err
}

// aboveThreads names a thread, its ancestors, and those that continue them.
const aboveThreads = `WITH RECURSIVE above (thread_id) AS (
	SELECT thread_id FROM threads WHERE thread_id = ?
	UNION SELECT u.thread_id FROM above a JOIN threads t ON t.thread_id = a.thread_id
		JOIN threads u ON u.thread_id IN (t.parent_id, t.continuation_thread_id)) `

// countLateSpawn counts one child against a parent that has ended. Neither it nor
// anybody above may be asked to stop, nor who continues one of them: a child
// registered after a cancel would escape it.
func countLateSpawn(ctx context.Context, tx *sql.Tx, n store.NewThread) error {
	var asked thread.ID
	err := tx.QueryRowContext(ctx, aboveThreads+`SELECT thread_id FROM threads
		WHERE thread_id IN (SELECT thread_id FROM above) AND cancel_requested_at IS NOT NULL LIMIT 1`, n.ParentID).Scan(&asked)
	switch {
	case err == nil:
		return fmt.Errorf("%s, above it, has been asked to stop: %w", asked, store.ErrParentGone)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	parent, err := parentOf(ctx, tx, n)
	switch {
	case err != nil:
		return err
	case !parent.Status.Terminal():
		return fmt.Errorf("parent %s has not ended, it is %s: %w", n.ParentID, parent.Status, store.ErrParentGone)
	case parent.SpawnCount >= n.MaxSpawns:
		return &store.SpawnsError{Parent: n.ParentID, Max: n.MaxSpawns}
	}
	_, err = tx.ExecContext(ctx, "UPDATE threads SET spawn_count = spawn_count + 1 WHERE thread_id = ?", n.ParentID)
	return err
}
