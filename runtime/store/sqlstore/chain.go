package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// mayRun is the condition that a thread continues none, or is named by the one
// that it continues.
const mayRun = `(continuation_of IS NULL OR EXISTS (SELECT 1 FROM threads before
	WHERE before.thread_id = threads.continuation_of AND before.continuation_thread_id = threads.thread_id))`

// prepareSuccessor looks at the thread that a new one is to continue, and completes what
// it has from there: the root of the chain, the labels and, by a handoff, the parent.
func prepareSuccessor(ctx context.Context, tx rowQuerier, n *store.NewThread) (chainRoot thread.ID, err error) {
	before, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, n.ContinuationOf))
	if err != nil {
		return "", notFound(err, n.ContinuationOf)
	}
	stopped := !before.CancelRequestedAt.IsZero()
	switch {
	case before.ContinuationThreadID != "":
		return "", &store.LinkedError{Thread: before.ThreadID, By: before.ContinuationThreadID}
	case n.Handoff && (before.Status != thread.Running || stopped):
		return "", &store.PredecessorError{Thread: before.ThreadID, State: before.Status, Stopped: stopped, Handoff: true}
	case n.Retry && !before.AwaitsRetry():
		return "", fmt.Errorf("thread %s: %w", before.ThreadID, store.ErrNoRetry)
	case n.Retry:
		err = noRival(ctx, tx, before.ThreadID)
	case !n.Handoff && !before.Status.Terminal():
		return "", &store.PredecessorError{Thread: before.ThreadID, State: before.Status, Stopped: stopped}
	case n.Handoff:
		n.ParentID = before.ParentID
	}
	n.Name, n.Metadata = before.Name, thread.InheritedMetadata(before.Metadata)
	return cmp.Or(before.ChainRootID, before.ThreadID), err
}

// noRival refuses an attempt while somebody else, on whichever machine, makes one.
func noRival(ctx context.Context, tx rowQuerier, id thread.ID) error {
	var rival thread.ID
	err := tx.QueryRowContext(ctx, "SELECT thread_id FROM threads WHERE continuation_of = ? AND status = 'created' LIMIT 1", id).Scan(&rival)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return &store.AttemptedError{Thread: id, By: rival}
}

// Link implements [store.Registry]. It is on disk when it returns.
func (s *Store) Link(ctx context.Context, id, successor thread.ID, at time.Time) error {
	err := s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		changed, err := changeIn(ctx, tx, `UPDATE threads SET continuation_thread_id = ?1, updated_at = ?2, retry_at = NULL
			WHERE thread_id = ?3 AND continuation_thread_id IS NULL AND status NOT IN ('created', 'running')
			AND EXISTS (SELECT 1 FROM threads next WHERE next.thread_id = ?1 AND next.continuation_of = ?3
				AND next.status = 'created' AND next.cancel_requested_at IS NULL)`, successor, millis(at), id)
		switch {
		case err != nil:
			return err
		case changed:
			return passOnMessages(ctx, tx, id, successor)
		}
		return whyNotLinked(ctx, tx, id, successor)
	})
	if err != nil {
		return fmt.Errorf("link %s to %s: %w", id, successor, err)
	}
	return nil
}

// whyNotLinked says why Link has changed nothing; nil when it had been done.
func whyNotLinked(ctx context.Context, tx *sql.Tx, id, successor thread.ID) error {
	rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, id))
	switch {
	case err != nil:
		return notFound(err, id)
	case rec.ContinuationThreadID == successor:
		return nil
	case rec.ContinuationThreadID != "":
		return &store.LinkedError{Thread: id, By: rec.ContinuationThreadID}
	case !rec.Status.Terminal():
		return &store.PredecessorError{Thread: id, State: rec.Status, Stopped: !rec.CancelRequestedAt.IsZero()}
	}
	next, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, successor))
	switch {
	case err != nil:
		return notFound(err, successor)
	case next.ContinuationOf != id:
		return fmt.Errorf("%s was registered to continue %q: %w", successor, next.ContinuationOf, store.ErrNotLinked)
	}
	return fmt.Errorf("thread %s is %s or has been asked to stop: %w", successor, next.Status, thread.ErrSettled)
}

// handOn links a thread that has ended to its successor and admits that in its
// place. The successor also gets the thread's place in the queue, for the case
// that it is put back there ([Store.Return]).
func handOn(ctx context.Context, tx *sql.Tx, c store.Change) error {
	id, next, at := c.ID(), c.Outcome().Handoff.NewThreadID, millis(c.At())
	var position *int64
	err := tx.QueryRowContext(ctx, "SELECT queue_position FROM threads WHERE thread_id = ?", id).Scan(&position)
	if err != nil {
		return err
	}
	linked, err := changeIn(ctx, tx, `UPDATE threads SET continuation_thread_id = ?1, queue_position = NULL
		WHERE thread_id = ?2 AND EXISTS (SELECT 1 FROM threads next WHERE next.thread_id = ?1 AND next.continuation_of = ?2)`, next, id)
	if err != nil || !linked {
		return err
	}
	if err := passOnMessages(ctx, tx, id, next); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE threads SET queued_at = ?1, admitted_at = ?1, updated_at = ?1, queue_position = coalesce(?2, `+nextPosition+`)
		WHERE thread_id = ?3 AND status = 'created' AND cancel_requested_at IS NULL`, at, position, next)
	return err
}

// notLinked is the refusal of a thread that mayRun keeps from it.
func notLinked(rec thread.Record) error {
	return fmt.Errorf("%s is to continue %s: %w", rec.ThreadID, rec.ContinuationOf, store.ErrNotLinked)
}
