// Package snapshots keeps the snapshots of a project's items in its schema of PostgreSQL.
package snapshots

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// MaxBytes is the largest content: that of a manifest.
const MaxBytes = 16 << 20

// deadline bounds each statement, of which one moves at most a content.
const deadline = 30 * time.Second

// page is how many rows one statement of a list reads.
const page = 1000

// Store is [snapshot.Store] in a project's schema.
type Store struct {
	At  Schema
	Now func() time.Time
}

// Schema is the schema of a project; a store of package postgres is one.
type Schema interface {
	// Pool has connections that look into the schema.
	Pool() *pgxpool.Pool
	// Again runs what may be run again until the server answers, and says what an error means.
	Again(context.Context, func(context.Context) error) error
}

var _ snapshot.Store = Store{}

// again runs f, which does the same twice as once, with a deadline, and again while the
// server is away.
func again(ctx context.Context, at Schema, f func(context.Context, *pgxpool.Pool) error) error {
	return at.Again(ctx, func(ctx context.Context) error {
		ctx, done := context.WithTimeout(ctx, deadline)
		defer done()
		return f(ctx, at.Pool())
	})
}

// exec is again for one statement.
func (s Store) exec(ctx context.Context, query string, args ...any) (done pgconn.CommandTag, err error) {
	err = again(ctx, s.At, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		done, err = pool.Exec(ctx, query, args...)
		return err
	})
	return done, err
}

// collect is again for a query.
func collect[T any](ctx context.Context, at Schema, scan pgx.RowToFunc[T], query string, args ...any) (all []T, err error) {
	err = again(ctx, at, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, query, args...)
		if err == nil {
			all, err = pgx.CollectRows(rows, scan)
		}
		return err
	})
	return all, err
}

// raw is a hash as it is stored.
func raw(h snapshot.Hash) ([]byte, error) {
	if _, err := snapshot.ParseHash(string(h)); err != nil {
		return nil, err
	}
	return hex.DecodeString(string(h))
}

// Use implements [snapshot.Blobs].
func (s Store) Use(ctx context.Context, hashes []snapshot.Hash) (missing []snapshot.Hash, err error) {
	all := make([][]byte, len(hashes))
	for i, h := range hashes {
		if all[i], err = raw(h); err != nil {
			return nil, err
		}
	}
	found, err := collect(ctx, s.At, scanHash, `UPDATE snapshot_blobs SET used_at = $2 WHERE hash IN (SELECT hash FROM snapshot_blobs WHERE hash = ANY($1) ORDER BY hash FOR UPDATE) RETURNING hash`,
		all, s.Now().UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("use contents: %w", err)
	}
	used := map[snapshot.Hash]bool{}
	for _, h := range found {
		used[h] = true
	}
	for _, h := range hashes {
		if !used[h] {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

func scanHash(row pgx.CollectableRow) (snapshot.Hash, error) {
	var b []byte
	err := row.Scan(&b)
	return snapshot.Hash(hex.EncodeToString(b)), err
}

// Put implements [snapshot.Blobs]. A content that was altered in the database becomes
// what it was.
func (s Store) Put(ctx context.Context, hash snapshot.Hash, size int64, content io.Reader) error {
	h, err := raw(hash)
	if err != nil {
		return err
	}
	if size > MaxBytes {
		return fmt.Errorf("content %s has %d bytes, more than %d", hash.Short(), size, MaxBytes)
	}
	data, err := io.ReadAll(io.LimitReader(snapshot.Verified(content, hash, size), MaxBytes+1))
	if err != nil {
		return err
	}
	if data == nil {
		data = []byte{}
	}
	_, err = s.exec(ctx, `INSERT INTO snapshot_blobs (hash, size, content, used_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (hash) DO UPDATE SET size = excluded.size, content = excluded.content, used_at = excluded.used_at`, h, len(data), data, s.Now().UnixMilli())
	if err != nil {
		return fmt.Errorf("put content %s: %w", hash.Short(), err)
	}
	return nil
}

// Get implements [snapshot.Blobs].
func (s Store) Get(ctx context.Context, hash snapshot.Hash) (io.ReadCloser, error) {
	h, err := raw(hash)
	if err != nil {
		return nil, err
	}
	found, err := collect(ctx, s.At, pgx.RowTo[[]byte], `SELECT CASE WHEN octet_length(content) <= $2 THEN content END FROM snapshot_blobs WHERE hash = $1`, h, MaxBytes)
	switch {
	case err != nil:
		return nil, fmt.Errorf("get content %s: %w", hash.Short(), err)
	case len(found) == 0:
		return nil, &snapshot.MissingError{Hash: hash}
	case found[0] == nil:
		return nil, &snapshot.AlteredError{Hash: hash, Why: fmt.Sprintf("it has more than %d bytes", MaxBytes)}
	}
	return io.NopCloser(snapshot.Verified(bytes.NewReader(found[0]), hash, -1)), nil
}

// Stat implements [snapshot.Blobs].
func (s Store) Stat(ctx context.Context, hash snapshot.Hash) (snapshot.Blob, error) {
	h, err := raw(hash)
	if err != nil {
		return snapshot.Blob{}, err
	}
	found, err := collect(ctx, s.At, scanBlob, `SELECT hash, size, used_at FROM snapshot_blobs WHERE hash = $1`, h)
	switch {
	case err != nil:
		return snapshot.Blob{}, fmt.Errorf("look at content %s: %w", hash.Short(), err)
	case len(found) == 0:
		return snapshot.Blob{}, &snapshot.MissingError{Hash: hash}
	}
	return found[0], nil
}

func scanBlob(row pgx.CollectableRow) (b snapshot.Blob, err error) {
	var h []byte
	var used int64
	err = row.Scan(&h, &b.Size, &used)
	b.Hash, b.UsedAt = snapshot.Hash(hex.EncodeToString(h)), time.UnixMilli(used).UTC()
	return b, err
}

// All implements [snapshot.Blobs].
func (s Store) All(ctx context.Context) iter.Seq2[snapshot.Blob, error] {
	return paged(ctx, s.At, []byte{}, `SELECT hash, size, used_at FROM snapshot_blobs WHERE hash > $1 ORDER BY hash LIMIT $2`, scanBlob, func(b snapshot.Blob) []byte {
		h, _ := raw(b.Hash) // it was made of one
		return h
	})
}

// paged lists rows in the order of their keys, some at a time.
func paged[T, K any](
	ctx context.Context, at Schema, after K, query string, scan pgx.RowToFunc[T], key func(T) K,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			some, err := collect(ctx, at, scan, query, after, page)
			for _, one := range some {
				if !yield(one, nil) {
					return
				}
				after = key(one)
			}
			if err != nil {
				var none T
				yield(none, fmt.Errorf("list snapshots: %w", err))
			}
			if err != nil || len(some) < page {
				return
			}
		}
	}
}

// Remove implements [snapshot.Blobs].
func (s Store) Remove(ctx context.Context, hash snapshot.Hash, since time.Time) (removed bool, err error) {
	h, err := raw(hash)
	if err != nil {
		return false, err
	}
	done, err := s.exec(ctx, `DELETE FROM snapshot_blobs WHERE hash = $1 AND used_at < $2`, h, since.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("remove content %s: %w", hash.Short(), err)
	}
	return done.RowsAffected() > 0, nil
}

// Name implements [snapshot.Names]. The disk is not waited for: the log of the server keeps
// nothing of what is written behind it without it.
func (s Store) Name(ctx context.Context, of thread.ID, hash snapshot.Hash) error {
	h, err := raw(hash)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, `INSERT INTO snapshot_names (thread_id, hash, at) SELECT $1, $2, $3 FROM set_config('synchronous_commit', 'off', true)
		ON CONFLICT (thread_id) DO UPDATE SET hash = excluded.hash, at = excluded.at`, string(of), h, s.Now().UnixMilli())
	if err != nil {
		return fmt.Errorf("name the snapshot of %s: %w", of, err)
	}
	return nil
}

// Forget implements [snapshot.Names].
func (s Store) Forget(ctx context.Context, of thread.ID) error {
	if _, err := s.exec(ctx, `DELETE FROM snapshot_names WHERE thread_id = $1`, string(of)); err != nil {
		return fmt.Errorf("forget the snapshot of %s: %w", of, err)
	}
	return nil
}

// Named implements [snapshot.Names].
func (s Store) Named(ctx context.Context) iter.Seq2[snapshot.Reference, error] {
	return paged(ctx, s.At, "", `SELECT thread_id, hash, at FROM snapshot_names WHERE thread_id > $1 ORDER BY thread_id LIMIT $2`,
		func(row pgx.CollectableRow) (r snapshot.Reference, err error) {
			var h []byte
			var at int64
			err = row.Scan(&r.Thread, &h, &at)
			r.Snapshot, r.At = snapshot.Hash(hex.EncodeToString(h)), time.UnixMilli(at).UTC()
			return r, err
		}, func(r snapshot.Reference) string { return string(r.Thread) })
}
