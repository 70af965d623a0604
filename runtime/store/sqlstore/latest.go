package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// latest is the [store.Latest] of a store.
type latest struct{ registry Database }

// withTree names what is above a thread and what is below the root of it. A thread that
// continues another belongs to the tree of that, whatever its parent. UNION drops ids
// that it has seen, so a circle ends.
const withTree = `WITH RECURSIVE
	above (id) AS (
		SELECT thread_id FROM threads WHERE thread_id = ?2
		UNION SELECT u.thread_id FROM above a JOIN threads t ON t.thread_id = a.id
			JOIN threads u ON u.thread_id IN (t.parent_id, t.continuation_of)),
	tree (id) AS (
		SELECT t.thread_id FROM threads t JOIN above a ON t.thread_id = a.id WHERE t.parent_id IS NULL AND t.continuation_of IS NULL
		UNION SELECT t.thread_id FROM tree r JOIN threads t ON t.parent_id = r.id OR t.continuation_of = r.id) `

// eligible are the threads of a directive that can have left something for ?2.
const eligible = "SELECT " + columns + ` FROM threads
	WHERE directive = ?1 AND (kind = 'directive' OR is_set = 1) AND thread_id NOT IN (SELECT id FROM above)
		AND coalesce(chain_root_id, thread_id) IS DISTINCT FROM (SELECT coalesce(own.chain_root_id, own.thread_id) FROM threads own WHERE own.thread_id = ?2)
		AND coalesce((SELECT parent.is_set FROM threads parent WHERE parent.thread_id = threads.parent_id), 0) = 0 `

// The newest of the eligible. The last two go through the index of the directive from its end.
const (
	latestInTreeSQL    = withTree + eligible + `AND thread_id IN (SELECT id FROM tree) ORDER BY status = 'completed' DESC, created_at DESC, rowid DESC LIMIT 1`
	latestCompletedSQL = withTree + eligible + `AND status = 'completed' ORDER BY created_at DESC, rowid DESC LIMIT 1`
	latestSQL          = withTree + eligible + `ORDER BY created_at DESC, rowid DESC LIMIT 1`
)

// Latest implements [store.Latest].
func (l latest) Latest(ctx context.Context, directive string, of thread.ID) (rec thread.Record, err error) {
	queries := []string{latestInTreeSQL, latestCompletedSQL, latestSQL}
	if of == "" {
		queries = queries[1:]
	}
	err = l.registry.Read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
		for _, query := range queries {
			rec, err = scanRecord(db.QueryRowContext(ctx, query, directive, of))
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return fmt.Errorf("directive %s: %w", directive, thread.ErrNotFound)
	})
	if err != nil {
		return thread.Record{}, fmt.Errorf("latest thread: %w", err)
	}
	return rec, nil
}
