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

// The conditions of the partial indexes, word for word, so that they are used.
const (
	isQueued = `status = 'created' AND queued_at IS NOT NULL AND admitted_at IS NULL AND cancel_requested_at IS NULL`
	inSlot   = `status IN ('created', 'running') AND admitted_at IS NOT NULL AND yielded = 0`
)

// isQueuedItself is isQueued of a row that is named by its id, in words that fit no index:
// else PostgreSQL can look for the one row among all that are queued.
const isQueuedItself = `status = 'created' AND coalesce(queued_at, 0) > 0 AND coalesce(admitted_at, 0) = 0 AND coalesce(cancel_requested_at, 0) = 0`

// Conditions of giving a slot. Neither counts the queue, which can be long.
const (
	slotsTaken   = `(SELECT count(*) FROM threads INDEXED BY threads_slots WHERE ` + inSlot + `)`
	nobodyQueued = `(SELECT queue_position FROM threads INDEXED BY threads_queued WHERE ` + isQueued + ` ORDER BY queue_position LIMIT 1) IS NULL`
)

// child is the condition that the parent of a thread may wait for it: it has not
// ended, or has handed over to one that may. For the entries of a set that is a root
// nobody waits in a slot. It is true or false, never null.
const child = `EXISTS (SELECT 1 FROM threads parent
	WHERE parent.thread_id = threads.parent_id AND parent.status IN ('created', 'running', 'continued')
		AND NOT (parent.is_set = 1 AND parent.parent_id IS NULL))`

// nextPosition is the end of the queue.
const nextPosition = `(SELECT coalesce(max(queue_position), 0) + 1 FROM threads WHERE queue_position IS NOT NULL)`

// Statements that put a thread in the queue. The first admits it at once when a slot is free and it
// goes before everybody there: nobody is queued, or it is a child and no other child is.
const (
	enqueueSQL = queueUp + `, admitted_at = CASE WHEN cancel_requested_at IS NULL AND ` + slotsTaken + ` < ?3
			AND (` + nobodyQueued + ` OR ` + child + ` AND NOT EXISTS (` + nextChildSQL + `)) THEN CAST(?1 AS BIGINT) END` + whoQueuesUp
	onlyQueueSQL = queueUp + whoQueuesUp

	queueUp     = `UPDATE threads SET queued_at = ?1, updated_at = ?1, queue_position = ` + nextPosition
	whoQueuesUp = ` WHERE thread_id = ?2 AND status = 'created' AND queued_at IS NULL AND ` + mayRun + ` RETURNING ` + columns
)

// Enqueue implements [store.Queue].
func (s *Store) Enqueue(ctx context.Context, id thread.ID, slots int, at time.Time) (rec thread.Record, err error) {
	query, args := onlyQueueSQL, []any{millis(at), id}
	if slots > 0 {
		query, args = enqueueSQL, append(args, slots, 0)
	}
	err = s.writeFrom(repeatable(ctx), Durable, query, args, func(ctx context.Context, tx *sql.Tx, queued row) error {
		rec, err = scanRecord(queued)
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

// Admit implements [store.Queue]. Which thread has a slot is not waited to
// disk: after a loss of power no thread has one.
func (s *Store) Admit(
	ctx context.Context, id thread.ID, slots int, at time.Time, run thread.Run,
) (rec thread.Record, admitted bool, err error) {
	rec, admitted, err = s.admit(ctx, id, slots, at, run)
	if err == nil && admitted {
		err = (&runner{s, id, run}).takeBudget(ctx)
	}
	if err != nil {
		return thread.Record{}, false, fmt.Errorf("admit: %w", err)
	}
	return rec, admitted, nil
}

// Next implements [store.Queue].
func (s *Store) Next(ctx context.Context, slots int, behind store.QueuePlace) (rec thread.Record, at store.QueuePlace, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		at = behind
		var taken int
		var empty bool
		err := db.QueryRowContext(ctx, "SELECT "+slotsTaken+", "+nobodyQueued).Scan(&taken, &empty)
		if err != nil || empty || taken >= slots {
			return err
		}
		for groups := []string{nextChildSQL, nextOtherSQL}; at.Group < len(groups); {
			rec, at.Position, err = nextQueued(ctx, db, groups[at.Group], at.Position)
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			at = store.QueuePlace{Group: at.Group + 1}
		}
		return nil
	})
	if err != nil {
		return thread.Record{}, at, fmt.Errorf("next in the queue: %w", err)
	}
	return rec, at, nil
}

const admitSQL = `UPDATE threads SET admitted_at = ?1, updated_at = ?1, run = ?2, ` + newWrite + `
	WHERE thread_id = ?3 AND ` + isQueuedItself + ` AND ` + slotsTaken + ` < ?4 RETURNING ` + columns

// admit gives a thread a slot that is still queued, where one is still free.
func (s *Store) admit(
	ctx context.Context, id thread.ID, slots int, at time.Time, run thread.Run,
) (rec thread.Record, admitted bool, err error) {
	err = s.writeFrom(minor(ctx), Local, admitSQL, []any{millis(at), run, id, slots}, func(_ context.Context, _ *sql.Tx, given row) error {
		rec, err = scanRecord(given)
		admitted = err == nil
		if errors.Is(err, sql.ErrNoRows) { // there is no slot, somebody was faster, or it is asked to stop
			return nil
		}
		return err
	})
	return rec, admitted, err
}

// The first behind a position, of the two groups of the queue.
const (
	nextChildSQL = `SELECT queue_position FROM threads INDEXED BY threads_queued_children
		WHERE ` + isQueued + ` AND parent_id IS NOT NULL AND ` + child + behindPosition
	nextOtherSQL   = `SELECT queue_position FROM threads INDEXED BY threads_queued WHERE ` + isQueued + ` AND NOT ` + child + behindPosition
	behindPosition = ` AND queue_position > ? ORDER BY queue_position LIMIT 1`
)

// nextQueued is the first thread of a group behind a position, and its own.
func nextQueued(ctx context.Context, tx rowQuerier, group string, behind int64) (rec thread.Record, position int64, err error) {
	next := tx.QueryRowContext(ctx, "SELECT "+columns+", queue_position FROM threads WHERE queue_position = ("+group+")", behind)
	rec, err = scanRecord(withPosition{next, &position})
	return rec, position, err
}

// withPosition is a row that has its place in the queue behind its columns.
type withPosition struct {
	row
	position *int64
}

// Scan implements row.
func (r withPosition) Scan(dest ...any) error { return r.row.Scan(append(dest, r.position)...) }

// Yield implements [store.Runner]. It is not waited to disk.
func (r *runner) Yield(ctx context.Context, yielded bool) error {
	if err := r.updateOne(repeatable(ctx), Local, `UPDATE threads SET yielded = ?, run = ? WHERE thread_id = ? AND `+ownRun+` AND status = 'running'`,
		yielded, r.run, r.id, r.run); err != nil {
		return fmt.Errorf("yield: %w", err)
	}
	return nil
}

// QueueLoad implements [store.Queue].
func (s *Store) QueueLoad(ctx context.Context) (load store.QueueLoad, err error) {
	load, err = recallBy(ctx, s.registry, queueLoadSQL, func(ctx context.Context, conn *sql.Conn) (store.QueueLoad, error) {
		return scanLoad(conn.QueryRowContext(ctx, queueLoadSQL))
	})
	if err != nil {
		return load, fmt.Errorf("load of the queue: %w", err)
	}
	return load, nil
}

// queueLoadSQL names its indexes, since SQLite would rather look at the row of every
// thread that is created or running.
const queueLoadSQL = `SELECT (SELECT count(*) FROM threads INDEXED BY threads_queued WHERE ` + isQueued + `),
	(SELECT count(*) FROM threads INDEXED BY threads_slots WHERE ` + inSlot + `),
	(SELECT count(*) FROM threads INDEXED BY threads_sets WHERE is_set = 1 AND status = 'running'),
	(SELECT count(*) FROM threads INDEXED BY threads_retry WHERE retry_at IS NOT NULL)`

func scanLoad(r row) (load store.QueueLoad, err error) {
	err = r.Scan(&load.Queued, &load.Occupied, &load.Sets, &load.Retries)
	return load, err
}
