package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The conditions of the partial indexes, word for word, so that they are used.
const (
	inLine = `status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL`
	inSlot = `status IN ('created', 'running') AND admitted_at IS NOT NULL AND yielded = 0`
)

// nextPosition is the end of the line.
const nextPosition = `(SELECT coalesce(max(queue_position), 0) + 1 FROM threads WHERE queue_position IS NOT NULL)`

// Enqueue implements [store.Registry].
func (s *Store) Enqueue(ctx context.Context, id thread.ID, slots int, at time.Time) (rec thread.Record, err error) {
	err = s.registry.write(ctx, durable, func(ctx context.Context, tx *sql.Tx) error {
		line, err := countLine(ctx, tx)
		if err != nil {
			return err
		}
		admit := line.Queued == 0 && line.Occupied < slots
		rec, err = scanRecord(tx.QueryRowContext(ctx, `UPDATE threads SET queued_at = ?1, updated_at = ?1,
			queue_position = `+nextPosition+`,
			admitted_at = iif(?2 AND cancel_requested_at IS NULL, ?1, NULL)
			WHERE thread_id = ?3 AND status = 'created' AND queued_at IS NULL AND `+mayRun+` RETURNING `+columns, millis(at), admit, id))
		if errors.Is(err, sql.ErrNoRows) {
			return notEnqueued(ctx, tx, id, &rec)
		}
		return err
	})
	if err != nil {
		return thread.Record{}, fmt.Errorf("enqueue: %w", err)
	}
	return rec, nil
}

// notEnqueued says why Enqueue has changed nothing; nil when it had been done.
func notEnqueued(ctx context.Context, tx *sql.Tx, id thread.ID, rec *thread.Record) (err error) {
	*rec, err = scanRecord(tx.QueryRowContext(ctx, byIDSQL, id))
	if err != nil {
		return notFound(err, id)
	}
	switch {
	case rec.Status != thread.Created:
		return fmt.Errorf("thread %s is %s: %w", id, rec.Status, thread.ErrSettled)
	case rec.QueuedAt.IsZero():
		return notLinked(*rec)
	}
	return nil
}

// Admit implements [store.Registry]. Which thread has a slot is not waited to
// disk: after a loss of power no thread has one.
func (s *Store) Admit(
	ctx context.Context, slots int, at time.Time, claim func(thread.Record) error,
) (rec thread.Record, admitted bool, err error) {
	err = s.registry.write(ctx, relaxed, func(ctx context.Context, tx *sql.Tx) error {
		line, err := countLine(ctx, tx)
		if err != nil || line.Queued == 0 || line.Occupied >= slots {
			return err
		}
		var position int64
		for {
			rec, position, err = nextInLine(ctx, tx, position)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := claim(rec); errors.Is(err, store.ErrTaken) {
				continue
			} else if err != nil {
				return fmt.Errorf("claim %s: %w", rec.ThreadID, err)
			}
			rec, err = scanRecord(tx.QueryRowContext(ctx,
				`UPDATE threads SET admitted_at = ?1, updated_at = ?1 WHERE thread_id = ?2 RETURNING `+columns, millis(at), rec.ThreadID))
			admitted = err == nil
			return err
		}
	})
	if err != nil {
		return thread.Record{}, false, fmt.Errorf("admit: %w", err)
	}
	return rec, admitted, nil
}

const nextInLineSQL = `SELECT queue_position FROM threads INDEXED BY threads_queued WHERE ` + inLine + ` AND queue_position > ? ORDER BY queue_position LIMIT 1`

// nextInLine is the first thread behind a position.
func nextInLine(ctx context.Context, tx *sql.Tx, behind int64) (thread.Record, int64, error) {
	var position int64
	err := tx.QueryRowContext(ctx, nextInLineSQL, behind).Scan(&position)
	if err != nil {
		return thread.Record{}, 0, err
	}
	rec, err := scanRecord(tx.QueryRowContext(ctx, "SELECT "+columns+" FROM threads WHERE queue_position = ?", position))
	return rec, position, err
}

// Yield implements [store.Registry]. It is not waited to disk.
func (s *Store) Yield(ctx context.Context, id thread.ID, yielded bool) error {
	if err := s.updateOne(ctx, id, `UPDATE threads SET yielded = ? WHERE thread_id = ? AND status = 'running'`, yielded, id); err != nil {
		return fmt.Errorf("yield: %w", err)
	}
	return nil
}

// Line implements [store.Registry].
func (s *Store) Line(ctx context.Context) (line store.Line, err error) {
	err = s.registry.read(ctx, func(db *sql.DB) (err error) {
		line, err = countLine(ctx, db)
		return err
	})
	if err != nil {
		return line, fmt.Errorf("line: %w", err)
	}
	return line, nil
}

// lineSQL names its indexes, since SQLite would rather look at the row of every
// thread that is created or running.
const lineSQL = `SELECT (SELECT count(*) FROM threads INDEXED BY threads_queued WHERE ` + inLine + `),
	(SELECT count(*) FROM threads INDEXED BY threads_slots WHERE ` + inSlot + `)`

func countLine(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (line store.Line, err error) {
	err = q.QueryRowContext(ctx, lineSQL).Scan(&line.Queued, &line.Occupied)
	return line, err
}
