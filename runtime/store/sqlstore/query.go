package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	byIDSQL         = "SELECT " + columns + " FROM threads WHERE thread_id = ?"
	byRequestKeySQL = "SELECT " + columns + " FROM threads WHERE request_key = ?"
)

// withSubtree names a thread, everything below it, and all that continue one of
// them. UNION drops ids it has seen, so a circle ends.
const withSubtree = `WITH RECURSIVE subtree (thread_id) AS (
	SELECT thread_id FROM threads WHERE thread_id = ?
	UNION SELECT t.thread_id FROM subtree s JOIN threads t ON t.parent_id = s.thread_id OR t.continuation_of = s.thread_id) `

// Get implements [store.Registry].
func (s *Store) Get(ctx context.Context, id thread.ID) (thread.Record, error) {
	stored, err := recall(ctx, s.registry, byIDSQL, id, scanStored)
	if err != nil {
		return thread.Record{}, s.deletedOr(ctx, notFound(err, id), id)
	}
	return stored.record()
}

// ByRequestKey implements [store.Registry].
func (s *Store) ByRequestKey(ctx context.Context, key string) (rec thread.Record, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
		rec, err = scanRecord(db.QueryRowContext(ctx, byRequestKeySQL, key))
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("request_key %q: %w", key, thread.ErrNotFound)
		}
		return err
	})
	return rec, err
}

// Descendants implements [store.Registry].
func (s *Store) Descendants(ctx context.Context, id thread.ID) (below []thread.Record, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		all, err := subtree(ctx, db, id)
		if err != nil {
			return err
		}
		below = all[1:]
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("descendants: %w", s.deletedOr(ctx, err, id))
	}
	return below, nil
}

// querier is a *sql.DB or *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// subtree returns the threads that withSubtree names, breadth first, siblings in
// the order of their creation.
func subtree(ctx context.Context, q querier, id thread.ID) ([]thread.Record, error) {
	recs, err := scanAll(q.QueryContext(ctx, withSubtree+"SELECT "+columns+` FROM threads
		WHERE thread_id IN (SELECT thread_id FROM subtree) ORDER BY created_at, thread_id`, id))
	if err != nil {
		return nil, err
	}
	behind := make(map[thread.ID][]thread.Record)
	var ordered []thread.Record
	for _, rec := range recs {
		if rec.ThreadID == id {
			ordered = append(ordered, rec)
		}
		behind[rec.ParentID] = append(behind[rec.ParentID], rec)
		behind[rec.ContinuationOf] = append(behind[rec.ContinuationOf], rec)
	}
	if len(ordered) == 0 {
		return nil, notFound(sql.ErrNoRows, id)
	}
	seen := map[thread.ID]bool{id: true}
	for i := 0; i < len(ordered); i++ {
		for _, rec := range behind[ordered[i].ThreadID] {
			if !seen[rec.ThreadID] {
				seen[rec.ThreadID] = true
				ordered = append(ordered, rec)
			}
		}
	}
	return ordered, nil
}
