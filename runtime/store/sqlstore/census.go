package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// census is the [store.Census] of a store.
type census struct{ registry Database }

const (
	aliveSQL = `SELECT count(*) FILTER (WHERE status = 'created'), count(*) FILTER (WHERE status = 'running'),
		count(*) FILTER (WHERE ` + isQueued + `), coalesce(min(queued_at) FILTER (WHERE ` + isQueued + `), 0),
		count(*) FILTER (WHERE status = 'running' AND yielded = 1) FROM threads INDEXED BY threads_status WHERE status IN ('created', 'running')`
	askedNowSQL = `SELECT q.kind, count(*), min(q.asked_at) FROM questions q JOIN threads t ON t.thread_id = q.thread_id
		WHERE q.answer IS NULL AND t.status = 'running' GROUP BY q.kind ORDER BY q.kind`
)

// Census implements [store.Census].
func (c census) Census(ctx context.Context) (store.Counts, error) {
	counts, err := recallBy(ctx, c.registry, aliveSQL, readCensus)
	if err != nil {
		return store.Counts{}, fmt.Errorf("count threads: %w", err)
	}
	return counts, nil
}

func readCensus(ctx context.Context, conn *sql.Conn) (counts store.Counts, err error) {
	var since int64
	err = conn.QueryRowContext(ctx, aliveSQL).Scan(&counts.Created, &counts.Running, &counts.Queued, &since, &counts.Yielded)
	if err != nil {
		return counts, err
	}
	counts.QueuedSince = fromMillis(since)
	rows, err := conn.QueryContext(ctx, askedNowSQL)
	counts.Questions, err = scanEach(rows, err, func(r row) (q store.OpenQuestions, err error) {
		err = r.Scan(&q.Kind, &q.Count, &since)
		q.Since = fromMillis(since)
		return q, err
	})
	return counts, err
}
