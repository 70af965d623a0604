package fleet

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Thread is one that lives by the lease of a worker.
type Thread struct {
	ID        thread.ID
	Cancelled bool // its cancel is on record
	Slot      bool // it occupies a slot: it does not only wait for others
}

// Threads are those of a project, whose schema is given, that live by the lease of an
// incarnation.
func (f *Fleet) Threads(ctx context.Context, schema string, of thread.Incarnation) ([]Thread, error) {
	rows, err := f.Pool.Query(ctx, `SELECT thread_id, cancel_requested_at IS NOT NULL, yielded = 0
	FROM `+pgx.Identifier{schema, "threads"}.Sanitize()+`
	WHERE status IN ('created', 'running') AND (status = 'running' OR admitted_at IS NOT NULL) AND is_set = 0
		AND substr(run, 2, $2) = $1`, string(of), len(of))
	if err != nil {
		return nil, fmt.Errorf("look at the threads of a worker: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Thread, err error) {
		err = row.Scan(&t.ID, &t.Cancelled, &t.Slot)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("look at the threads of a worker: %w", err)
	}
	return found, nil
}
