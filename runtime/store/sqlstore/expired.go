package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// treesSQL finds what withSubtree does for several threads at once.
const treesSQL = `WITH RECURSIVE tree (top, thread_id) AS (
	SELECT t.thread_id, t.thread_id FROM json_each(?) asked JOIN threads t ON t.thread_id = asked.value
	UNION SELECT s.top, t.thread_id FROM tree s JOIN threads t ON t.parent_id = s.thread_id OR t.continuation_of = s.thread_id)
	SELECT top, t.* FROM tree JOIN (SELECT ` + lightColumns + ` FROM threads) t USING (thread_id)
	ORDER BY t.created_at, t.thread_id`

// Trees implements [store.Deletions].
func (s *deletions) Trees(ctx context.Context, tops []thread.ID) (trees map[thread.ID][]thread.Record, err error) {
	type member struct {
		top thread.ID
		rec thread.Record
	}
	var members []member
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, treesSQL, jsonList(tops))
		members, err = scanEach(rows, err, func(r row) (m member, err error) {
			m.rec, err = scanRecord(behind{r, &m.top})
			return m, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("trees of threads: %w", err)
	}
	trees = make(map[thread.ID][]thread.Record, len(tops))
	for _, m := range members {
		trees[m.top] = append(trees[m.top], m.rec)
	}
	return trees, nil
}

// behind is a row whose first column is read into another place.
type behind struct {
	row
	first *thread.ID
}

func (b behind) Scan(into ...any) error { return b.row.Scan(append([]any{b.first}, into...)...) }

// Expired implements [store.Deletions]. Each state is read from its own index in the
// order of creation; nothing is used before it is created, so that no younger row is
// looked at.
func (s *deletions) Expired(ctx context.Context, e store.Expiry) (rows []thread.Record, err error) {
	states := e.States
	if len(states) == 0 {
		states = thread.EndStates()
	}
	where, args := []string{"created_at <= ?", "last_used <= ?", "retry_at IS NULL"}, []any{millis(e.UsedUntil), millis(e.UsedUntil)}
	if e.Directive != "" {
		where, args = append(where, "directive = ?"), append(args, e.Directive)
	}
	if e.After != nil {
		where, args = append(where, "(created_at, thread_id) > (?, ?)"), append(args, millis(e.After.CreatedAt), e.After.ThreadID)
	}
	var selects []string
	var all []any
	for _, state := range states {
		if !state.Terminal() {
			return nil, fmt.Errorf("expired threads: %q is not a state in which a thread has ended", state)
		}
		selects = append(selects, "SELECT "+lightColumns+" FROM threads WHERE status = ? AND "+strings.Join(where, " AND "))
		all = append(append(all, state), args...)
	}
	query := strings.Join(selects, " UNION ALL ") + " ORDER BY created_at, thread_id LIMIT ?"
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
		rows, err = scanAll(db.QueryContext(ctx, query, append(all, pageOrAll(e.Limit))...))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("expired threads: %w", err)
	}
	return rows, nil
}

// newestUse is the end of the day, of UTC, on which any thread was last used; zero where
// there is none. It reads no thread.
func newestUse(ctx context.Context, tx *sql.Tx) (at time.Time, err error) {
	const aDay = 24 * 60 * 60 * 1000
	var day sql.NullInt64
	err = tx.QueryRowContext(ctx, "SELECT max(day) FROM days WHERE used > 0").Scan(&day)
	if day.Valid {
		at = fromMillis((day.Int64 + 1) * aDay)
	}
	return at, err
}
