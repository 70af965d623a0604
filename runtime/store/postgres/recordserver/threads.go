package recordserver

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Kept is a thread of which the server has something.
type Kept struct {
	ID    thread.ID
	Files []string
}

// Threads returns at most so many threads whose ids come after one, in their order.
func (s *Server) Threads(ctx context.Context, after thread.ID, most int) (page []Kept, err error) {
	err = s.read(ctx, "", func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT thread_id, array_agg(name ORDER BY name) FROM record_files WHERE thread_id > $1 GROUP BY thread_id ORDER BY thread_id LIMIT $2`,
			string(after), most)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k Kept, err error) {
			err = row.Scan(&k.ID, &k.Files)
			return k, err
		})
		return err
	})
	return page, none(err)
}

// Known are those of some threads of which the server has something.
func (s *Server) Known(ctx context.Context, ids []thread.ID) (known map[thread.ID]bool, err error) {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	known = map[thread.ID]bool{}
	err = s.read(ctx, "", func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT DISTINCT thread_id FROM record_files WHERE thread_id = ANY($1)`, all)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[thread.ID])
		for _, id := range found {
			known[id] = true
		}
		return err
	})
	return known, none(err)
}

// Remove removes all that is kept of a thread that has ended, or has no row. It can be
// repeated.
func (s *Server) Remove(ctx context.Context, id thread.ID) error {
	if _, err := s.schema(ctx, false); err != nil {
		return none(err)
	}
	return s.write(ctx, Writer{Thread: id}, func(ctx context.Context, tx session) error {
		if _, err := tx.Exec(ctx, `DELETE FROM record_files WHERE thread_id = $1`, string(id)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM record_tails WHERE thread_id = $1`, string(id)); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `DELETE FROM record_artifacts WHERE thread_id = $1 RETURNING sha256`, string(id))
		if err != nil {
			return err
		}
		hashes, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil || len(hashes) == 0 {
			return err
		}
		return forget(ctx, tx, hashes)
	})
}

// Size is how many bytes are kept of a thread.
func (s *Server) Size(ctx context.Context, id thread.ID) (bytes int64, err error) {
	err = s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
		return pool.QueryRow(ctx, `SELECT (SELECT coalesce(sum(size), 0) FROM record_files WHERE thread_id = $1)::bigint
			+ (SELECT coalesce(sum(size), 0) FROM record_artifacts WHERE thread_id = $1)::bigint`, string(id)).Scan(&bytes)
	})
	return bytes, none(err)
}

// Pack puts a compressed file, which the writer has put together under another name, in the
// place of a plain one, which has not changed since it was read; else the error is
// ErrChanged.
func (s *Server) Pack(ctx context.Context, w Writer, draft, name string, plain File) error {
	return s.write(ctx, w, func(ctx context.Context, tx session) error {
		done, err := tx.Exec(ctx, `DELETE FROM record_files WHERE thread_id = $1 AND name = $2 AND generation = $3 AND size = $4 AND writer = $5`,
			string(w.Thread), plain.Name, plain.Generation, plain.Size, plain.Writer)
		if err == nil && done.RowsAffected() == 0 {
			return fmt.Errorf("%s: %w", plain.Name, ErrChanged)
		}
		if err != nil {
			return err
		}
		done, err = tx.Exec(ctx, `UPDATE record_files SET name = $3, content = $4, changed_at = $5 WHERE thread_id = $1 AND name = $2 AND writer = $6`,
			string(w.Thread), draft, name, plain.Size, plain.Changed.UnixMilli(), w.Token)
		if err == nil && done.RowsAffected() == 0 {
			return errTaken
		}
		return err
	})
}

// Leftovers removes contents that nobody names and that were last begun so long ago, and
// wishes that are over.
func (s *Server) Leftovers(ctx context.Context, age time.Duration) (removed int64, err error) {
	err = s.read(ctx, "", func(ctx context.Context, pool *pgxpool.Pool) error {
		done, err := pool.Exec(ctx, `DELETE FROM blobs b WHERE made_at < `+millisSQL+` - $1
			AND NOT EXISTS (SELECT 1 FROM record_artifacts a WHERE a.sha256 = b.sha256)`, age.Milliseconds())
		if err != nil {
			return err
		}
		removed = done.RowsAffected()
		_, err = pool.Exec(ctx, `DELETE FROM record_tails WHERE until < `+millisSQL)
		return err
	})
	return removed, none(err)
}
