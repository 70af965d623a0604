package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// retries is the [store.Retries] of a store.
type retries struct{ registry Database }

const isDue = `(retry_at <= ?1 OR completed_at > ?2)`

const (
	dueRetriesSQL = "SELECT " + columns + ` FROM threads INDEXED BY threads_retry
		WHERE retry_at IS NOT NULL AND ` + isDue + ` ORDER BY retry_at, thread_id LIMIT ?3`
	nextRetrySQL = `SELECT coalesce(min(retry_at), 0) FROM threads INDEXED BY threads_retry WHERE retry_at IS NOT NULL AND NOT ` + isDue
)

// DueRetries implements [store.Retries].
func (s retries) DueRetries(ctx context.Context, at time.Time, most int) (due []thread.Record, next time.Time, err error) {
	now, ahead := millis(at), millis(at.Add(store.RetrySkew))
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		due, err = scanAll(db.QueryContext(ctx, dueRetriesSQL, now, ahead, most))
		if err != nil {
			return err
		}
		var first int64
		err := db.QueryRowContext(ctx, nextRetrySQL, now, ahead).Scan(&first)
		next = fromMillis(first)
		return err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("retries that are due: %w", err)
	}
	return due, next, nil
}

// DropRetry implements [store.Retries].
func (s retries) DropRetry(ctx context.Context, id thread.ID, why string, at time.Time) (dropped bool, err error) {
	dropped, err = change(ctx, s.registry, Durable, `UPDATE threads SET retry_at = NULL, retry_note = ?, updated_at = ?
		WHERE thread_id = ? AND retry_at IS NOT NULL`, why, millis(at), id)
	if err != nil {
		return false, fmt.Errorf("drop the retry of %s: %w", id, err)
	}
	return dropped, nil
}

// dropRetries takes back what is to be tried again below a thread that is cancelled, and
// the thread itself.
func dropRetries(ctx context.Context, tx *sql.Tx, id thread.ID, at time.Time) error {
	_, err := tx.ExecContext(ctx, withSubtree+`UPDATE threads SET retry_at = NULL, retry_note = ?, updated_at = ?
		WHERE retry_at IS NOT NULL AND thread_id IN (SELECT thread_id FROM subtree)`, id, thread.RetryCancelled, millis(at))
	return err
}
