package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Return implements [store.Runner]. It is not waited to disk: after a loss of
// power the thread is found without a process again.
func (r *runner) Return(ctx context.Context) (rec thread.Record, err error) {
	err = r.registry.Write(ctx, Local, func(ctx context.Context, tx *sql.Tx) (err error) {
		rec, err = scanRecord(tx.QueryRowContext(ctx, `UPDATE threads SET admitted_at = NULL, updated_at = ?, run = ?
			WHERE thread_id = ? AND `+ownRun+` AND status = 'created' AND admitted_at IS NOT NULL AND pid = 0 AND cancel_requested_at IS NULL
			RETURNING `+columns, millis(r.now()), r.run, r.id, r.run))
		if errors.Is(err, sql.ErrNoRows) {
			return r.notReturned(ctx, tx)
		}
		return err
	})
	if err != nil {
		return thread.Record{}, fmt.Errorf("return to the queue: %w", err)
	}
	return rec, nil
}

func (r *runner) notReturned(ctx context.Context, tx *sql.Tx) error {
	rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, r.id))
	if err != nil {
		return notFound(err, r.id)
	}
	if !r.owns(rec.Run) {
		return fenced(r.id)
	}
	return fmt.Errorf("thread %s is %s, with process %d: %w", r.id, rec.Status, rec.PID, thread.ErrSettled)
}

// Occupants implements [store.Queue].
func (s *Store) Occupants(ctx context.Context) (rows []thread.Record, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
		rows, err = scanAll(db.QueryContext(ctx, "SELECT "+columns+" FROM threads INDEXED BY threads_slots WHERE "+inSlot))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("occupants of slots: %w", err)
	}
	return rows, nil
}
