package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// heirSQL finds the nearest of a settled thread ?1 and the settled ones above it,
// up to the first active one, that has handed over to a chain whose last thread is
// active, and that thread. An active one above is behind them all, and has no heir.
const heirSQL = `WITH RECURSIVE above (thread_id, level) AS (
		SELECT thread_id, 0 FROM budgets WHERE thread_id = ?1 UNION
		SELECT b.parent_id, a.level + 1 FROM budgets b JOIN above a USING (thread_id) WHERE b.status = 'settled' AND b.parent_id IS NOT NULL),
	chain (from_id, level, thread_id) AS (
		SELECT a.thread_id, a.level, b.successor_id FROM above a JOIN budgets b USING (thread_id) WHERE b.successor_id IS NOT NULL UNION
		SELECT c.from_id, c.level, b.successor_id FROM chain c JOIN budgets b USING (thread_id) WHERE b.successor_id IS NOT NULL)
	SELECT f.thread_id, f.max_spend - f.actual_spend - f.reserved_spend, coalesce(f.parent_id, ''), b.thread_id
	FROM chain c JOIN budgets b USING (thread_id) JOIN budgets f ON f.thread_id = c.from_id
	WHERE b.status = 'active' ORDER BY c.level LIMIT 1`

// giveBack lets the money that a settled child of parent has not used pass to the
// thread that continues parent, or the nearest above it that has handed over: the
// money of a chain is one budget. It was that of the chain already, so that those
// above hold as much as before. Without such a thread it is the active one's above.
func giveBack(ctx context.Context, tx *sql.Tx, parent thread.ID, free thread.Micros, at int64) error {
	if parent == "" || free <= 0 {
		return nil
	}
	var from, above, heir thread.ID
	var unused thread.Micros // of what the one that handed over has kept for its children; less when it is overdrawn
	err := tx.QueryRowContext(ctx, heirSQL, parent).Scan(&from, &unused, &above, &heir)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	free = min(free, max(0, unused))
	for _, change := range []struct {
		id   thread.ID
		more thread.Micros
	}{{from, -free}, {heir, free}} {
		_, err := tx.ExecContext(ctx, "UPDATE budgets SET max_spend = max_spend + ?, updated_at = ? WHERE thread_id = ?",
			int64(change.more), at, change.id)
		if err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, aboveSQL+"UPDATE budgets SET reserved_spend = reserved_spend + ?2, updated_at = ?3 WHERE thread_id IN (SELECT thread_id FROM above)",
		above, int64(free), at)
	return err
}
