package recordserver

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Sum is the hash of a chunk.
type Sum struct {
	At   int64
	Size int
	Hash [sha256.Size]byte
}

func scanSum(row pgx.CollectableRow) (s Sum, err error) {
	var hash []byte
	if err = row.Scan(&s.At, &s.Size, &hash); err == nil && copy(s.Hash[:], hash) != sha256.Size {
		err = ErrDamaged
	}
	return s, err
}

// sumsPage is how many hashes one statement reads.
const sumsPage = 4096

// Sums visits the hashes of the chunks of a file, in order, until visit reports that it
// has enough.
func (s *Server) Sums(ctx context.Context, id thread.ID, f File, visit func(Sum) (more bool, err error)) error {
	for at := int64(0); at < f.Size; {
		var page []Sum
		err := s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
			rows, err := pool.Query(ctx, `SELECT c.at, c.size, c.sha256 FROM record_files f JOIN record_chunks c USING (thread_id, name)
				WHERE f.thread_id = $1 AND f.name = $2 AND f.generation = $3 AND c.at >= $4 ORDER BY c.at LIMIT $5`,
				string(id), f.Name, f.Generation, at, sumsPage)
			if err != nil {
				return err
			}
			page, err = pgx.CollectRows(rows, scanSum)
			return err
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("%s of %s: %w", f.Name, id, ErrChanged)
		}
		for _, sum := range page {
			if sum.At != at || sum.Size <= 0 || sum.Size > ChunkBytes {
				return fmt.Errorf("%s of %s: %w: %d bytes at %d follow %d", f.Name, id, ErrDamaged, sum.Size, sum.At, at)
			}
			if more, err := visit(sum); err != nil || !more {
				return err
			}
			at += int64(sum.Size)
		}
	}
	return nil
}

// Chunks visits what a file has from a place on, up to its size, a chunk at a time. The
// chunk in which that place is comes from there on.
func (s *Server) Chunks(ctx context.Context, id thread.ID, f File, from int64, visit func(at int64, part []byte) error) error {
	for from < f.Size {
		page, err := s.page(ctx, id, f, from)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("%s of %s: %w", f.Name, id, ErrChanged)
		}
		for _, c := range page {
			if c.hash != sha256.Sum256(c.bytes) || c.at > from || c.at+int64(len(c.bytes)) <= from {
				return fmt.Errorf("%s of %s: %w: at %d", f.Name, id, ErrDamaged, from)
			}
			part := c.bytes[from-c.at:]
			part = part[:min(int64(len(part)), f.Size-from)]
			if len(part) == 0 {
				return nil
			}
			if err := visit(from, part); err != nil {
				return err
			}
			from += int64(len(part))
		}
	}
	return nil
}

type chunk struct {
	at    int64
	hash  [sha256.Size]byte
	bytes []byte
}

// page reads some chunks, the first of which has the place from in it.
func (s *Server) page(ctx context.Context, id thread.ID, f File, from int64) (page []chunk, err error) {
	err = s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT c.at, c.sha256, CASE WHEN octet_length(c.bytes) <= $6 THEN c.bytes END
			FROM record_files f JOIN record_chunks c USING (thread_id, name)
			WHERE f.thread_id = $1 AND f.name = $2 AND f.generation = $3
				AND c.at >= (SELECT coalesce(max(at), 0) FROM record_chunks WHERE thread_id = $1 AND name = $2 AND at <= $4) AND c.at < $7
			ORDER BY c.at LIMIT $5`, string(id), f.Name, f.Generation, from, PageChunks, ChunkBytes, f.Size)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c chunk, err error) {
			var hash []byte
			if err = row.Scan(&c.at, &hash, &c.bytes); err == nil && copy(c.hash[:], hash) != sha256.Size {
				err = ErrDamaged
			}
			return c, err
		})
		return err
	})
	return page, err
}
