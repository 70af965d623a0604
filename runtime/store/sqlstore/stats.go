package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The cost of these does not grow with the number of threads that have ended.
const (
	statsSQL = `SELECT coalesce(sum(used), 0), coalesce(sum(used) FILTER (WHERE day >= ?), 0), coalesce(sum(tokens), 0),
		coalesce(sum(spend) FILTER (WHERE day >= ?), 0), coalesce((SELECT max(token_count) FROM threads), 0) FROM days`
	knownSQL = `SELECT thread_id FROM threads WHERE thread_id IN (SELECT value FROM json_each(?1)) UNION
		SELECT thread_id FROM deletions WHERE record IS NOT NULL AND thread_id IN (SELECT value FROM json_each(?1))`
	activeSQL = selectBudget + " WHERE status = 'active'"
)

// Stats implements [store.Registry]. It reads a row for each day on which a thread was
// used or created, and no thread.
func (s *Store) Stats(ctx context.Context, since store.StatsSince) (st store.Stats, err error) {
	const aDay = 24 * 60 * 60 * 1000
	var tokens int64
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, statsSQL, millis(since.Used)/aDay, millis(since.Created)/aDay).
			Scan(&st.Threads, &st.Active, &tokens, &st.Spend, &st.MaxTokens)
	})
	if err != nil {
		return st, fmt.Errorf("stats: %w", err)
	}
	if st.Threads > 0 {
		st.AvgTokens = float64(tokens) / float64(st.Threads)
	}
	return st, nil
}

// Known implements [store.Registry]. It reads an index and no row.
func (s *Store) Known(ctx context.Context, ids []thread.ID) (known map[thread.ID]bool, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, knownSQL, jsonList(ids))
		found, err := scanEach(rows, err, func(r row) (id thread.ID, err error) {
			err = r.Scan(&id)
			return id, err
		})
		known = make(map[thread.ID]bool, len(found))
		for _, id := range found {
			known[id] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("known threads: %w", err)
	}
	return known, nil
}

// Active implements [store.Ledger].
func (s *Store) Active(ctx context.Context) (active []store.Budget, err error) {
	err = s.ledger.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, activeSQL)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		active = nil
		for rows.Next() {
			b, err := scanBudget(rows)
			if err != nil {
				return err
			}
			active = append(active, b)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("active budgets: %w", err)
	}
	return active, nil
}
