package mirrors

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/due"
)

// Standing is how far a mirror is behind.
type Standing struct {
	due.Standing

	Mirror string // see [ID]
}

// mostShown is how many mirrors, and how many characters of a text, are read: a role of the
// project can write any.
const mostShown = 100

// Standings say how far each mirror of a project is behind.
func Standings(ctx context.Context, pool *pgxpool.Pool) ([]Standing, error) {
	ctx, done := context.WithTimeout(ctx, deadline)
	defer done()
	rows, err := pool.Query(ctx, `SELECT mirror, CASE WHEN sends_until > clock_timestamp() THEN left(split_part(sender, ' ', 1), $1) ELSE '' END,
		left(failure, $1), CASE WHEN failure <> '' AND isfinite(failed_at) THEN failed_at END, count(thread_id)::int, min(since)
		FROM mirrors LEFT JOIN mirror_due USING (mirror) GROUP BY mirror ORDER BY mirror LIMIT $1`, mostShown)
	if err != nil {
		return nil, fmt.Errorf("what is due for the mirrors of the project: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Standing, err error) {
		var failed, oldest *time.Time
		err = row.Scan(&s.Mirror, &s.Sender, &s.Failure, &failed, &s.Threads, &oldest)
		if failed != nil {
			s.FailedAt = *failed
		}
		if oldest != nil {
			s.Oldest = *oldest
		}
		return s, err
	})
}

// Tried keeps what an attempt to send all has met, for people; empty: nothing.
func (o *Outbox) Tried(ctx context.Context, failure string) error {
	_, err := o.exec(ctx, "note how sending copies went", `UPDATE mirrors SET failure = left($2, 200), failed_at = clock_timestamp()
		WHERE mirror = $1 AND (failure <> '' OR $2 <> '')`, o.Mirror, failure)
	return err
}
