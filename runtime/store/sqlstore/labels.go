package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// chainSQL reads the labels of a thread and of all others of its chain.
const chainLabelsSQL = `WITH root (id) AS (SELECT coalesce(chain_root_id, thread_id) FROM threads WHERE thread_id = ?)
	SELECT thread_id, name, metadata FROM threads WHERE thread_id = (SELECT id FROM root)
	UNION ALL SELECT thread_id, name, metadata FROM threads WHERE chain_root_id = (SELECT id FROM root)`

// labelled is a thread with its labels.
type labelled struct {
	id       thread.ID
	name     string
	metadata []byte
}

// Label implements [store.Labels]. It is on disk when it returns.
func (s *Store) Label(ctx context.Context, id thread.ID, l store.LabelChange, at time.Time) (rec thread.Record, err error) {
	if l.Name != "" {
		if l.Name, err = thread.ParseName(l.Name); err != nil {
			return thread.Record{}, fmt.Errorf("label thread %s: %w", id, err)
		}
	}
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) (err error) {
		if err := labelChain(ctx, tx, id, l, millis(at)); err != nil {
			return err
		}
		rec, err = scanRecord(tx.QueryRowContext(ctx, byIDSQL, id))
		return notFound(err, id)
	})
	if err != nil {
		return thread.Record{}, fmt.Errorf("label thread %s: %w", id, err)
	}
	return rec, nil
}

func labelChain(ctx context.Context, tx *sql.Tx, id thread.ID, l store.LabelChange, at int64) error {
	rows, err := tx.QueryContext(ctx, chainLabelsSQL, id)
	members, err := scanEach(rows, err, func(r row) (m labelled, err error) {
		err = r.Scan(&m.id, &m.name, &m.metadata)
		return m, err
	})
	if err != nil {
		return err
	}
	for _, m := range members {
		name, metadata := m.name, m.metadata
		if l.Name != "" {
			name = l.Name
		}
		if len(l.Metadata) > 0 {
			if metadata, err = thread.PatchMetadata(m.metadata, l.Metadata); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE threads SET name = ?1, metadata = ?2, updated_at = ?3
			WHERE thread_id = ?4 AND (name <> ?1 OR metadata <> ?2)`, name, string(metadata), at, m.id)
		if err != nil {
			return err
		}
	}
	return nil
}
