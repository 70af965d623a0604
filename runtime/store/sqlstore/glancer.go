package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// glancer is the [store.Glancer] of a store.
type glancer struct{ registry, ledger Database }

// glanceSQL reads the rows of a glance: of the threads that have ended, no other continues
// and were used last, so many that are no entries of sets, and so many roots, and what is
// linked to those and to the threads that have not ended. UNION drops ids that it has seen,
// so a circle ends.
const glanceSQL = `WITH RECURSIVE
	recent (id, parent_id) AS MATERIALIZED (
		SELECT thread_id, parent_id FROM threads INDEXED BY threads_used
		WHERE status NOT IN ('created', 'running') AND continuation_thread_id IS NULL ORDER BY last_used DESC, thread_id DESC LIMIT ?3),
	wanted (id) AS (
		SELECT thread_id FROM threads WHERE status IN ('created', 'running')
		UNION SELECT thread_id FROM threads INDEXED BY threads_retry WHERE retry_at IS NOT NULL
		UNION SELECT id FROM (SELECT id FROM recent WHERE parent_id IS NULL OR NOT EXISTS (SELECT 1 FROM sets WHERE set_id = parent_id) LIMIT ?1) AS ended
		UNION SELECT id FROM (SELECT id FROM recent WHERE parent_id IS NULL LIMIT ?2) AS roots),
	seen (id) AS (
		SELECT id FROM wanted
		UNION SELECT u.thread_id FROM seen s JOIN threads t ON t.thread_id = s.id
			JOIN threads u ON u.thread_id IN (t.parent_id, t.continuation_of, t.continuation_thread_id))
	SELECT ` + glanceColumns + ` FROM threads WHERE thread_id IN (SELECT id FROM seen)`

// glanceColumns is what scanGlance reads, in its order.
const glanceColumns = `thread_id, CASE WHEN is_set = 1 THEN 'set' ELSE kind END, directive, name, coalesce(parent_id, ''), status, worker, model,
	coalesce(continuation_of, ''), coalesce(continuation_thread_id, ''), turns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, spend,
	token_count, coalesce(queued_at, 0), coalesce(admitted_at, 0), yielded, unread,
	coalesce(cancel_requested_at, 0), created_at, updated_at, coalesce(completed_at, 0), last_used, coalesce(retry_at, 0)`

func scanGlance(r row) (rec thread.Record, err error) {
	var queued, admitted, cancelled, created, updated, completed, used, retry int64
	err = r.Scan(&rec.ThreadID, &rec.Kind, &rec.Directive, &rec.Name, &rec.ParentID, &rec.Status, &rec.Worker, &rec.Model,
		&rec.ContinuationOf, &rec.ContinuationThreadID,
		&rec.Cost.Turns, &rec.Cost.InputTokens, &rec.Cost.OutputTokens, &rec.Cost.CacheReadTokens, &rec.Cost.CacheWriteTokens, &rec.Cost.Spend,
		&rec.TokenCount, &queued, &admitted, &rec.Yielded, &rec.Unread, &cancelled, &created, &updated, &completed, &used, &retry)
	rec.RetryAt = fromMillis(retry)
	rec.QueuedAt, rec.AdmittedAt, rec.CancelRequestedAt = fromMillis(queued), fromMillis(admitted), fromMillis(cancelled)
	rec.CreatedAt, rec.UpdatedAt, rec.CompletedAt, rec.LastUsed = fromMillis(created), fromMillis(updated), fromMillis(completed), fromMillis(used)
	return rec, err
}

// recentPerEnded is how many threads are looked through for each that is wanted.
const recentPerEnded = 4

// Glance implements [store.Glancer].
func (g glancer) Glance(ctx context.Context, most store.EndedMost) (seen store.Glance, err error) {
	err = g.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // nothing was written
		rows, err := tx.QueryContext(ctx, glanceSQL, most.Any, most.Roots, recentPerEnded*(most.Any+most.Roots))
		if seen.Rows, err = scanEach(rows, err, scanGlance); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT coalesce((SELECT sum(used) FROM days), 0), coalesce((SELECT max(seq) FROM deletions), 0)").
			Scan(&seen.Threads, &seen.Deleted)
	})
	if err != nil {
		return store.Glance{}, fmt.Errorf("look at all threads: %w", err)
	}
	return seen, nil
}

const budgetsSQL = selectBudget + ` WHERE status = 'active' UNION ALL
	SELECT ` + budgetColumns + ` FROM budgets WHERE status = 'settled' AND thread_id IN (SELECT value FROM json_each(?))`

// Budgets implements [store.Glancer].
func (g glancer) Budgets(ctx context.Context, ids []thread.ID) (list []store.Budget, err error) {
	err = g.ledger.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, budgetsSQL, jsonList(ids))
		list, err = scanEach(rows, err, func(r row) (store.Budget, error) { return scanBudget(r) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("budgets: %w", err)
	}
	return list, nil
}

// setCountsSQL counts the entries by how they stand, and a set without entries once. An
// entry whose chain runs in a circle counts as deleted.
const setCountsSQL = withEntries + "SELECT * FROM set_entries WHERE set_id = ?1" + lastOf + `, last AS (SELECT position, thread_id FROM chain WHERE next IS NULL)
	SELECT CASE WHEN e.refused IS NOT NULL THEN 'refused' WHEN e.started_at IS NULL THEN 'waiting' WHEN t.retry_at IS NOT NULL THEN 'retrying' ELSE coalesce(t.status, 'deleted') END, e.reused, count(*)
	FROM entries e LEFT JOIN last l USING (position) LEFT JOIN threads t ON t.thread_id = l.thread_id GROUP BY 1, 2`

const belowSetSQL = `WITH RECURSIVE below (id) AS (
		SELECT thread_id FROM threads WHERE parent_id = ?1
		UNION SELECT t.thread_id FROM below b JOIN threads t ON t.parent_id = b.id OR t.continuation_of = b.id)
	SELECT (SELECT count(*) FROM below), EXISTS (SELECT 1 FROM sets WHERE set_id = ?1)`

// SetCounts implements [store.Glancer].
func (g glancer) SetCounts(ctx context.Context, id thread.ID) (c store.SetCounts, err error) {
	err = g.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		c = store.SetCounts{States: map[thread.State]int{}}
		var known bool
		if err := db.QueryRowContext(ctx, belowSetSQL, id).Scan(&c.Below, &known); err != nil {
			return err
		}
		if !known {
			return store.ErrNoSet
		}
		rows, err := db.QueryContext(ctx, setCountsSQL, id)
		_, err = scanEach(rows, err, func(r row) (none struct{}, err error) { return none, addEntries(&c, r) })
		return err
	})
	if err != nil {
		if errors.Is(err, store.ErrNoSet) {
			return store.SetCounts{}, fmt.Errorf("set %s: %w", id, err)
		}
		return store.SetCounts{}, fmt.Errorf("count entries of %s: %w", id, err)
	}
	return c, nil
}

func addEntries(c *store.SetCounts, r row) error {
	var stands string
	var reused bool
	var n int
	if err := r.Scan(&stands, &reused, &n); err != nil {
		return err
	}
	c.Items += n
	if reused {
		c.Reused += n
	}
	switch stands {
	case "refused":
		c.Refused += n
	case "waiting":
		c.Waiting += n
	case "retrying":
		c.Retrying += n
	case "deleted":
		c.Deleted += n
	default:
		c.States[thread.State(stands)] += n
	}
	return nil
}
