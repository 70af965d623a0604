package sqlite

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

// withSubtree names a thread and everything below it. UNION drops ids it has
// seen, so a circle in parent_id ends.
const withSubtree = `WITH RECURSIVE subtree (thread_id) AS (
	VALUES (?) UNION SELECT t.thread_id FROM threads t JOIN subtree s ON t.parent_id = s.thread_id) `

// Get implements [store.Registry].
func (s *Store) Get(ctx context.Context, id thread.ID) (thread.Record, error) {
	stored, err := recall(ctx, s.registry, byIDSQL, id, scanStored)
	if err != nil {
		return thread.Record{}, notFound(err, id)
	}
	return stored.record()
}

// ByRequestKey implements [store.Registry].
func (s *Store) ByRequestKey(ctx context.Context, key string) (rec thread.Record, err error) {
	err = s.registry.read(ctx, func(db *sql.DB) (err error) {
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
	err = s.registry.read(ctx, func(db *sql.DB) error {
		all, err := subtree(ctx, db, id)
		if err != nil {
			return err
		}
		below = all[1:]
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("descendants: %w", err)
	}
	return below, nil
}

// querier is a *sql.DB or *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// subtree returns the thread and all below it, breadth first, siblings in the
// order of their creation.
func subtree(ctx context.Context, q querier, id thread.ID) ([]thread.Record, error) {
	recs, err := scanAll(q.QueryContext(ctx, withSubtree+"SELECT "+columns+` FROM threads
		WHERE thread_id IN subtree ORDER BY created_at, thread_id`, id))
	if err != nil {
		return nil, err
	}
	children := make(map[thread.ID][]thread.Record)
	var ordered []thread.Record
	for _, rec := range recs {
		if rec.ThreadID == id {
			ordered = append(ordered, rec)
		} else {
			children[rec.ParentID] = append(children[rec.ParentID], rec)
		}
	}
	if len(ordered) == 0 {
		return nil, notFound(sql.ErrNoRows, id)
	}
	// Each thread is in the list of one parent, so each is appended once.
	for i := 0; i < len(ordered); i++ {
		ordered = append(ordered, children[ordered[i].ThreadID]...)
	}
	return ordered, nil
}
