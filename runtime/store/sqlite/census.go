package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// census is the [store.Census] of a store.
type census struct{ registry *database }

const (
	statesSQL = `SELECT status, count(*) FROM threads INDEXED BY threads_status GROUP BY status`
	aliveSQL  = `SELECT count(*) FILTER (WHERE ` + isQueued + `), coalesce(min(queued_at) FILTER (WHERE ` + isQueued + `), 0),
		count(*) FILTER (WHERE status = 'running' AND yielded = 1) FROM threads INDEXED BY threads_status WHERE status IN ('created', 'running')`
	askedNowSQL = `SELECT q.kind, count(*), min(q.asked_at) FROM questions q JOIN threads t ON t.thread_id = q.thread_id
		WHERE q.answer IS NULL AND t.status = 'running' GROUP BY q.kind ORDER BY q.kind`
)

// Census implements [store.Census].
func (c census) Census(ctx context.Context) (counts store.Counts, err error) {
	counts, err = recallBy(ctx, c.registry, rowKey{query: statesSQL}, func(ctx context.Context, conn *sql.Conn) (store.Counts, error) {
		counts := store.Counts{States: map[thread.State]int{}}
		if err := countStates(ctx, conn, counts.States); err != nil {
			return counts, err
		}
		var since int64
		if err := conn.QueryRowContext(ctx, aliveSQL).Scan(&counts.Queued, &since, &counts.Yielded); err != nil {
			return counts, err
		}
		counts.QueuedSince = fromMillis(since)
		rows, err := conn.QueryContext(ctx, askedNowSQL)
		counts.Questions, err = scanEach(rows, err, func(r row) (q store.OpenQuestions, err error) {
			var since int64
			err = r.Scan(&q.Kind, &q.Count, &since)
			q.Since = fromMillis(since)
			return q, err
		})
		return counts, err
	})
	if err != nil {
		return store.Counts{}, fmt.Errorf("count threads: %w", err)
	}
	return counts, nil
}

func countStates(ctx context.Context, conn *sql.Conn, into map[thread.State]int) error {
	rows, err := conn.QueryContext(ctx, statesSQL)
	_, err = scanEach(rows, err, func(r row) (none struct{}, err error) {
		var (
			state thread.State
			n     int
		)
		if err = r.Scan(&state, &n); err == nil {
			into[state] = n
		}
		return none, err
	})
	return err
}
