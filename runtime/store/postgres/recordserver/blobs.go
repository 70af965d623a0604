package recordserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Hash names a content.
type Hash = [sha256.Size]byte

// Missing are those of some contents that the server does not have whole.
func (s *Server) Missing(ctx context.Context, hashes []Hash) (missing []Hash, err error) {
	all := make([][]byte, len(hashes))
	for i, h := range hashes {
		all[i] = h[:]
	}
	err = s.read(ctx, "", func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT h FROM unnest($1::bytea[]) AS h WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE sha256 = h AND whole = 1)`, all)
		if err != nil {
			return err
		}
		missing, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Hash, err error) {
			var b []byte
			err = row.Scan(&b)
			copy(h[:], b)
			return h, err
		})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return hashes, nil
	}
	return missing, err
}

// Keep stores a content, in as many transactions as its size needs; nobody reads it before
// the last one. Two who store the same do each other no harm.
func (s *Server) Keep(ctx context.Context, w Writer, h Hash, content io.ReaderAt, size int64) error {
	buffer := make([]byte, min(size, PageChunks*ChunkBytes))
	for at := int64(0); ; {
		part := buffer[:min(int64(len(buffer)), size-at)]
		if _, err := content.ReadAt(part, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		last := at+int64(len(part)) == size
		err := s.write(ctx, w, func(ctx context.Context, tx session) error {
			all := &pgx.Batch{}
			all.Queue(`INSERT INTO blobs (sha256, size, whole, made_at) VALUES ($1, $2, 0, `+millisSQL+`)
				ON CONFLICT (sha256) DO UPDATE SET made_at = excluded.made_at`, h[:], size)
			for i := 0; i < len(part); i += ChunkBytes {
				all.Queue(`INSERT INTO blob_chunks (sha256, at, bytes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
					h[:], at+int64(i), part[i:min(i+ChunkBytes, len(part))])
			}
			if last {
				all.Queue(`UPDATE blobs SET whole = 1 WHERE sha256 = $1 AND whole = 0`, h[:])
			}
			return tx.SendBatch(ctx, all).Close()
		})
		if at += int64(len(part)); err != nil || last {
			return err
		}
	}
}

// Content writes a content of at most so many bytes, a chunk at a time, and holds it
// against its hash: when the error is not nil, what was written is not it. Without one the
// error wraps fs.ErrNotExist.
func (s *Server) Content(ctx context.Context, h Hash, most int64, to io.Writer) error {
	var size int64
	err := s.read(ctx, "", func(ctx context.Context, pool *pgxpool.Pool) error {
		err := pool.QueryRow(ctx, `SELECT size FROM blobs WHERE sha256 = $1 AND whole = 1`, h[:]).Scan(&size)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("content %x: %w", h[:8], fs.ErrNotExist)
		}
		return err
	})
	if err != nil {
		return err
	}
	if size > most {
		return fmt.Errorf("content %x has %d bytes, more than %d", h[:8], size, most)
	}
	sum := sha256.New()
	for at := int64(0); at < size; {
		page, err := s.blobPage(ctx, h, at)
		if err != nil {
			return err
		}
		for _, part := range page {
			if at += int64(len(part)); len(part) == 0 || at > size {
				return fmt.Errorf("content %x: %w", h[:8], ErrDamaged)
			}
			sum.Write(part) // never returns an error
			if _, err := to.Write(part); err != nil {
				return err
			}
		}
		if len(page) == 0 {
			return fmt.Errorf("content %x: %w: it ends at %d of %d bytes", h[:8], ErrDamaged, at, size)
		}
	}
	if Hash(sum.Sum(nil)) != h {
		return fmt.Errorf("content %x: %w: it has another hash", h[:8], ErrDamaged)
	}
	return nil
}

func (s *Server) blobPage(ctx context.Context, h Hash, from int64) (page [][]byte, err error) {
	err = s.read(ctx, "", func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT at, CASE WHEN octet_length(bytes) <= $4 THEN bytes END FROM blob_chunks WHERE sha256 = $1 AND at >= $2 ORDER BY at LIMIT $3`,
			h[:], from, PageChunks, ChunkBytes)
		if err != nil {
			return err
		}
		at := from
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (part []byte, err error) {
			var here int64
			if err = row.Scan(&here, &part); err == nil && here != at {
				err = fmt.Errorf("content %x: %w: at %d", h[:8], ErrDamaged, at)
			}
			at += int64(len(part))
			return part, err
		})
		return err
	})
	return page, err
}

// Artifact is one of a thread.
type Artifact struct {
	Name string // hash and extension
	Hash Hash   // of its content
	Size int64
}

// Artifacts lists those of a thread, oldest first.
func (s *Server) Artifacts(ctx context.Context, id thread.ID) (list []Artifact, err error) {
	err = s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT name, sha256, size FROM record_artifacts WHERE thread_id = $1 ORDER BY place`, string(id))
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Artifact, err error) {
			var hash []byte
			err = row.Scan(&a.Name, &hash, &a.Size)
			copy(a.Hash[:], hash)
			return a, err
		})
		return err
	})
	return list, none(err)
}

func queueArtifact(all *pgx.Batch, id thread.ID, a Artifact) {
	all.Queue(`INSERT INTO record_artifacts (thread_id, name, sha256, size, added_at) VALUES ($1, $2, $3, $4, `+millisSQL+`) ON CONFLICT DO NOTHING`,
		string(id), a.Name, a.Hash[:], a.Size)
}

// Share gives a thread the artifacts of another. To share them again changes nothing.
func (s *Server) Share(ctx context.Context, from, to thread.ID) error {
	return none(s.read(ctx, to, func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := pool.Exec(ctx, `INSERT INTO record_artifacts (thread_id, name, sha256, size, added_at)
			SELECT $2, name, sha256, size, `+millisSQL+` FROM record_artifacts WHERE thread_id = $1 ORDER BY place ON CONFLICT DO NOTHING`,
			string(from), string(to))
		return err
	}))
}

// RemoveArtifact removes an artifact, and its content when nobody else has it. The error
// wraps fs.ErrNotExist when there is none.
func (s *Server) RemoveArtifact(ctx context.Context, w Writer, name string) error {
	if _, err := s.schema(ctx, false); err != nil {
		return err
	}
	return s.write(ctx, w, func(ctx context.Context, tx session) error {
		var hash []byte
		err := tx.QueryRow(ctx, `DELETE FROM record_artifacts WHERE thread_id = $1 AND name = $2 RETURNING sha256`, string(w.Thread), name).Scan(&hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("artifact %s: %w", name, fs.ErrNotExist)
		}
		if err != nil {
			return err
		}
		return forget(ctx, tx, [][]byte{hash})
	})
}

// forget removes contents that nothing names any more. One that somebody just names again
// makes the transaction collide.
func forget(ctx context.Context, tx session, hashes [][]byte) error {
	_, err := tx.Exec(ctx, `DELETE FROM blobs b WHERE sha256 = ANY($1)
		AND NOT EXISTS (SELECT 1 FROM record_artifacts a WHERE a.sha256 = b.sha256)`, hashes)
	return err
}
