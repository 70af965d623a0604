package recordserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// File is a file as the server has it.
type File struct {
	Name       string
	Generation int64 // another one when content was replaced or cut off
	Size       int64
	Content    int64  // what a compressed file contains, in bytes; else Size
	Hash       []byte // of the whole content; nil for what grows
	Writer     string
	Changed    time.Time // by the server's clock
}

// Files are those kept of a thread, by their names.
func (s *Server) Files(ctx context.Context, id thread.ID) (files []File, err error) {
	err = s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT name, generation, size, content, sha256, writer, changed_at FROM record_files WHERE thread_id = $1 ORDER BY name`, string(id))
		if err != nil {
			return err
		}
		files, err = pgx.CollectRows(rows, scanFile)
		return err
	})
	return files, none(err)
}

func scanFile(row pgx.CollectableRow) (f File, err error) {
	var changed int64
	err = row.Scan(&f.Name, &f.Generation, &f.Size, &f.Content, &f.Hash, &f.Writer, &changed)
	f.Changed = time.UnixMilli(changed).UTC()
	return f, err
}

// Put is a small file that is replaced as a whole.
type Put struct {
	Name    string
	Content []byte
}

// Put replaces a file.
func (s *Server) Put(ctx context.Context, w Writer, p Put) error {
	return s.write(ctx, w, func(ctx context.Context, tx session) error { return put(ctx, tx, w, p) })
}

func put(ctx context.Context, tx session, w Writer, p Put) error {
	hash := sha256.Sum256(p.Content)
	all := &pgx.Batch{}
	all.Queue(`INSERT INTO record_files (thread_id, name, size, content, sha256, writer, changed_at) VALUES ($1, $2, $3, $3, $4, $5, `+millisSQL+`)
		ON CONFLICT (thread_id, name) DO UPDATE SET generation = excluded.generation, size = excluded.size, content = excluded.content,
			sha256 = excluded.sha256, writer = excluded.writer, changed_at = excluded.changed_at`,
		string(w.Thread), p.Name, len(p.Content), hash[:], w.Token)
	all.Queue(`DELETE FROM record_chunks WHERE thread_id = $1 AND name = $2`, string(w.Thread), p.Name)
	at := int64(0)
	for content := p.Content; len(content) > 0; {
		part := content[:min(len(content), ChunkBytes)]
		queueChunk(all, w.Thread, p.Name, at, part)
		at, content = at+int64(len(part)), content[len(part):]
	}
	return tx.SendBatch(ctx, all).Close()
}

func queueChunk(all *pgx.Batch, id thread.ID, name string, at int64, part []byte) {
	hash := sha256.Sum256(part)
	all.Queue(`INSERT INTO record_chunks (thread_id, name, at, size, sha256, bytes) VALUES ($1, $2, $3, $4, $5, $6)`,
		string(id), name, at, len(part), hash[:], part)
}

// Drop removes a file. The error wraps fs.ErrNotExist when there is none.
func (s *Server) Drop(ctx context.Context, w Writer, name string) error {
	if _, err := s.schema(ctx, false); err != nil {
		return err
	}
	return s.write(ctx, w, func(ctx context.Context, tx session) error {
		done, err := tx.Exec(ctx, `DELETE FROM record_files WHERE thread_id = $1 AND name = $2`, string(w.Thread), name)
		if err == nil && done.RowsAffected() == 0 {
			return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return err
	})
}

// Fetch returns a file of at most so many bytes that was written by Put, unless its hash
// is have: then it is the same. Without one the error is fs.ErrNotExist.
func (s *Server) Fetch(ctx context.Context, id thread.ID, name string, have []byte, most int64) (content []byte, same bool, err error) {
	err = s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
		content, same, err = fetch(ctx, pool, id, name, have, most)
		return err
	})
	return content, same, err
}

// fetch reads file and chunks in one statement, so that they belong together.
func fetch(ctx context.Context, pool *pgxpool.Pool, id thread.ID, name string, have []byte, most int64) (content []byte, same bool, err error) {
	rows, err := pool.Query(ctx, `SELECT f.size, f.sha256, c.at, CASE WHEN octet_length(c.bytes) <= $5 THEN c.bytes END
		FROM record_files f LEFT JOIN record_chunks c ON c.thread_id = f.thread_id AND c.name = f.name AND f.sha256 IS DISTINCT FROM $3 AND f.size <= $4
		WHERE f.thread_id = $1 AND f.name = $2 ORDER BY c.at`, string(id), name, have, most, ChunkBytes)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	found := false
	var size int64
	var hash []byte
	for rows.Next() {
		var at *int64
		var part []byte
		if err := rows.Scan(&size, &hash, &at, &part); err != nil {
			return nil, false, err
		}
		found = true
		switch {
		case at == nil: // it is the same, empty, or too large
		case *at != int64(len(content)) || len(part) == 0 || *at+int64(len(part)) > size:
			return nil, false, fmt.Errorf("%s: %w: no %d bytes at %d", name, ErrDamaged, len(part), *at)
		default:
			content = append(content, part...)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, false, err
	}
	sum := sha256.Sum256(content)
	switch {
	case !found:
		return nil, false, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	case have != nil && bytes.Equal(hash, have):
		return nil, true, nil
	case size > most:
		return nil, false, fmt.Errorf("%s has %d bytes, more than %d", name, size, most)
	case !bytes.Equal(sum[:], hash):
		return nil, false, fmt.Errorf("%s: %w: it has another hash", name, ErrDamaged)
	}
	return content, false, nil
}

// Take makes a writer the one that appends to a file, which is still as it was seen, or
// still not there when before is nil; else the error is ErrChanged. The writer before
// appends nothing more.
func (s *Server) Take(ctx context.Context, w Writer, name string, before *File) error {
	end := "COMMIT"
	if before == nil { // where that is lost the run takes it again, see gone
		end = relaxed
	}
	return s.writeAnd(ctx, w, end, func(ctx context.Context, tx session) error {
		var done pgconn.CommandTag
		var err error
		if before == nil {
			done, err = tx.Exec(ctx, `INSERT INTO record_files (thread_id, name, writer, changed_at) VALUES ($1, $2, $3, `+millisSQL+`) ON CONFLICT DO NOTHING`,
				string(w.Thread), name, w.Token)
		} else {
			done, err = tx.Exec(ctx, `UPDATE record_files SET writer = $3 WHERE thread_id = $1 AND name = $2 AND writer = $4 AND generation = $5 AND size = $6`,
				string(w.Thread), name, w.Token, before.Writer, before.Generation, before.Size)
		}
		if err == nil && done.RowsAffected() == 0 {
			return fmt.Errorf("%s: %w", name, ErrChanged)
		}
		return err
	})
}

// errTaken says that another process appends to a file.
var errTaken = fmt.Errorf("another process writes it: %w", store.ErrFenced)

// Parcel is what is new of a thread since it was last shipped. Name with From and Chunks
// is the file that grows: the chunks follow its first From bytes, and what it has behind
// them is cut off.
type Parcel struct {
	Name      string // empty: no file has grown
	From      int64
	Chunks    [][]byte // each of at most ChunkBytes, at most PageChunks
	Puts      []Put
	Artifacts []Artifact // whose content is there
	Drop      string     // a file that goes with it; empty: none
}

// Ship adds a parcel, all or nothing, and reports whether somebody follows the thread, who
// is told then. A parcel that was shipped before changes nothing: the answer to it may have
// been lost.
func (s *Server) Ship(ctx context.Context, w Writer, p Parcel) (followed bool, err error) {
	err = s.write(ctx, w, func(ctx context.Context, tx session) error {
		if p.Name != "" {
			if err := grow(ctx, tx, w, p); err != nil {
				return err
			}
		}
		for _, file := range p.Puts {
			if err := put(ctx, tx, w, file); err != nil {
				return err
			}
		}
		all := &pgx.Batch{}
		for _, a := range p.Artifacts {
			queueArtifact(all, w.Thread, a)
		}
		if p.Drop != "" {
			all.Queue(`DELETE FROM record_files WHERE thread_id = $1 AND name = $2`, string(w.Thread), p.Drop)
		}
		all.Queue(followedSQL, string(w.Thread)).QueryRow(func(row pgx.Row) error { return row.Scan(&followed) })
		return tx.SendBatch(ctx, all).Close()
	})
	if err == nil && followed && p.Name != "" {
		s.tell(ctx, w.Thread)
	}
	return followed, err
}

// grow appends the chunks of a parcel.
func grow(ctx context.Context, tx session, w Writer, p Parcel) error {
	var size int64
	var writer string
	err := tx.QueryRow(ctx, `SELECT size, writer FROM record_files WHERE thread_id = $1 AND name = $2 FOR NO KEY UPDATE`, string(w.Thread), p.Name).Scan(&size, &writer)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return gone(ctx, tx, w, p)
	case err != nil:
		return err
	case writer != w.Token:
		return errTaken
	case p.From > size:
		return &GapError{Size: size, From: p.From}
	}
	cut := 0
	if p.From < size {
		if p, err = notYet(ctx, tx, w, p); err != nil {
			return err
		}
		if p.From < size {
			cut = 1
		}
	}
	all := &pgx.Batch{}
	if cut == 1 {
		all.Queue(`DELETE FROM record_chunks WHERE thread_id = $1 AND name = $2 AND at >= $3`, string(w.Thread), p.Name, p.From)
		all.Queue(`UPDATE record_chunks SET size = ($3 - at)::integer, bytes = substring(bytes FROM 1 FOR ($3 - at)::integer),
			sha256 = sha256(substring(bytes FROM 1 FOR ($3 - at)::integer)) WHERE thread_id = $1 AND name = $2 AND at < $3 AND at + size > $3`,
			string(w.Thread), p.Name, p.From)
	}
	at := p.From
	for _, part := range p.Chunks {
		queueChunk(all, w.Thread, p.Name, at, part)
		at += int64(len(part))
	}
	if all.Len() == 0 {
		return nil
	}
	all.Queue(`UPDATE record_files SET size = $3, content = $3, generation = CASE WHEN $4 = 1 THEN nextval('record_generations') ELSE generation END, changed_at = `+millisSQL+` WHERE thread_id = $1 AND name = $2`,
		string(w.Thread), p.Name, at, cut)
	return tx.SendBatch(ctx, all).Close()
}

// gone says what it means that a file is not there which a writer has taken. Of a thread whose
// run goes on the server has lost it, as a standby that was promoted has; of any other somebody
// has put another in its place.
func gone(ctx context.Context, tx session, w Writer, p Parcel) error {
	var status thread.State
	err := tx.QueryRow(ctx, `SELECT status FROM threads WHERE thread_id = $1 AND run = $2`, string(w.Thread), string(w.Run)).Scan(&status)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && status.Terminal():
		return errTaken
	case err != nil:
		return err
	}
	return &GapError{From: p.From, Gone: true}
}

// notYet is a parcel without the chunks that the server has in their place.
func notYet(ctx context.Context, tx session, w Writer, p Parcel) (Parcel, error) {
	rows, err := tx.Query(ctx, `SELECT at, size, sha256 FROM record_chunks WHERE thread_id = $1 AND name = $2 AND at >= $3 ORDER BY at LIMIT $4`,
		string(w.Thread), p.Name, p.From, len(p.Chunks))
	if err != nil {
		return p, err
	}
	sums, err := pgx.CollectRows(rows, scanSum)
	if err != nil {
		return p, err
	}
	for _, has := range sums {
		if part := p.Chunks[0]; has.At != p.From || has.Size != len(part) || has.Hash != sha256.Sum256(part) {
			break
		}
		p.From, p.Chunks = p.From+int64(has.Size), p.Chunks[1:]
	}
	return p, nil
}
