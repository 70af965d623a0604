package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Stats implements [store.Registry]. It reads every row, some 20 ms for 100 000.
func (s *Store) Stats(ctx context.Context, since store.StatsSince) (st store.Stats, err error) {
	err = s.registry.read(ctx, func(db *sql.DB) error {
		return db.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE last_used >= ?),
				coalesce(avg(token_count), 0), coalesce(max(token_count), 0),
				(SELECT coalesce(sum(spend), 0) FROM threads WHERE created_at >= ?) FROM threads`,
			millis(since.Used), millis(since.Created)).
			Scan(&st.Threads, &st.Active, &st.AvgTokens, &st.MaxTokens, &st.Spend)
	})
	if err != nil {
		return st, fmt.Errorf("stats: %w", err)
	}
	return st, nil
}

// IDs implements [store.Registry]. It reads an index and no row.
func (s *Store) IDs(ctx context.Context) (ids []thread.ID, err error) {
	err = s.registry.read(ctx, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT thread_id FROM threads")
		ids, err = scanEach(rows, err, func(r row) (id thread.ID, err error) { return id, r.Scan(&id) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ids: %w", err)
	}
	return ids, nil
}

// Active implements [store.Ledger].
func (s *Store) Active(ctx context.Context) (active []store.Budget, err error) {
	err = s.ledger.read(ctx, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, selectBudget+" WHERE status = 'active'")
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
