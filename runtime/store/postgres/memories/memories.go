// Package memories keeps the entries of a project's memory in its schema of PostgreSQL.
// The index of each machine finds them; a reader brings it up to the last change first.
// Entries are signed, and verified wherever they are read. Everything else in the index
// comes from the database, where every role of the project can write.
package memories

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// Index is [memory.Index] of a project that several machines work on.
type Index struct {
	// Local finds entries on this machine.
	Local memory.Index
	// Place is that of the project.
	Place string
	// Open opens the project's schema; nil: there is none yet, unless it is to be created.
	Open func(ctx context.Context, create bool) (Schema, error)
}

// Schema is the schema of a project; a store of package postgres is one.
type Schema interface {
	// Pool has connections that look into the schema.
	Pool() *pgxpool.Pool
	// Again runs what may be run again until the server answers, and says what an error means.
	Again(context.Context, func(context.Context) error) error
}

var _ memory.Index = (*Index)(nil)

// heardSpace has one row for each place: up to which change the index on this machine has followed.
const heardSpace = "rye.memory.heard"

const heardKey = "heard"

// page is how many changes are followed together.
const page = 200

// deadline bounds each statement, and the wait for the lock.
const deadline = 30 * time.Second

// Names of what is locked, within a schema.
const (
	writers = "memory writers" // reading and then writing, see Lock
	changes = "memory changes" // giving out seq and committing
)

const lockSQL = `SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $1, 0))`

// Lock is had by one writer of the project at a time, on any machine. It is lost with the
// connection.
func (x *Index) Lock(ctx context.Context) (unlock func(), err error) {
	at, err := x.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	err = at.Again(ctx, func(ctx context.Context) error {
		unlock, err = lock(ctx, at.Pool())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lock memory: %w", err)
	}
	return unlock, nil
}

func lock(ctx context.Context, pool *pgxpool.Pool) (unlock func(), err error) {
	waits, done := context.WithTimeout(ctx, deadline)
	defer done()
	conn, err := pgx.ConnectConfig(waits, pool.Config().ConnConfig) // the pool may have one, which the writer needs
	if err != nil {
		return nil, err
	}
	release := func() {
		end, done := context.WithTimeout(context.WithoutCancel(ctx), deadline)
		defer done()
		_ = conn.Close(end) // it has written nothing
	}
	tx, err := conn.Begin(waits)
	if err == nil {
		_, err = tx.Exec(waits, lockSQL, writers)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// change runs f in a transaction whose changes come after all that others have seen, and
// again while the server is away: f does the same twice as once.
func (x *Index) change(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	at, err := x.Open(ctx, true)
	if err != nil {
		return err
	}
	err = at.Again(ctx, func(ctx context.Context) error {
		ctx, done := context.WithTimeout(ctx, deadline)
		defer done()
		return pgx.BeginFunc(ctx, at.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockSQL, changes); err != nil {
				return err
			}
			return f(ctx, tx)
		})
	})
	if err != nil {
		return fmt.Errorf("write memory: %w", err)
	}
	return nil
}

// Store implements [memory.Index].
func (x *Index) Store(ctx context.Context, rows []rag.Row) (rag.Stored, error) {
	err := x.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		all := &pgx.Batch{}
		for _, r := range rows {
			all.Queue(`INSERT INTO memory_rows (namespace, key, thread_id, chain_root, text, metadata, model, vector, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
				ON CONFLICT (namespace, key) DO UPDATE SET seq = excluded.seq, gone = 0, thread_id = excluded.thread_id, chain_root = excluded.chain_root, text = excluded.text,
					metadata = excluded.metadata, created_at = excluded.created_at,
					model = CASE WHEN excluded.vector IS NULL AND memory_rows.text = excluded.text THEN memory_rows.model ELSE excluded.model END,
					vector = CASE WHEN excluded.vector IS NULL AND memory_rows.text = excluded.text THEN memory_rows.vector ELSE excluded.vector END`,
				r.Namespace, r.Key, r.ThreadID, r.ChainRoot, r.Text, string(r.Metadata), r.Model, encoded(r.Vector), r.CreatedAt.UnixMilli())
		}
		return tx.SendBatch(ctx, all).Close()
	})
	if err != nil {
		return rag.Stored{}, err
	}
	return x.Local.Store(ctx, rows)
}

// Delete implements [memory.Index].
func (x *Index) Delete(ctx context.Context, d rag.Deletion) (deleted int, err error) {
	if d.Project != x.Place { // of other projects there are copies alone
		return x.Local.Delete(ctx, d)
	}
	if err := x.follow(ctx); err != nil {
		return 0, err
	}
	keys := d.Keys
	if len(keys) == 0 {
		found, err := x.Local.List(ctx, rag.Listing{Namespace: d.Namespace, Project: d.Project, ThreadIDs: d.ThreadIDs})
		if err != nil {
			return 0, err
		}
		for _, r := range found {
			keys = append(keys, r.Key)
		}
	}
	err = x.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE memory_rows SET seq = nextval('memory_changes'), gone = 1, thread_id = '', chain_root = '', text = '', metadata = '{}', model = '', vector = NULL
			WHERE namespace = $1 AND key = ANY($2) AND gone = 0`, d.Namespace, keys)
		return err
	})
	if err != nil {
		return 0, err
	}
	return x.Local.Delete(ctx, d)
}

// Query implements [memory.Index].
func (x *Index) Query(ctx context.Context, q rag.Query) (rag.Answer, error) {
	if err := x.follow(ctx); err != nil {
		return rag.Answer{}, err
	}
	return x.Local.Query(ctx, q)
}

// List implements [memory.Index].
func (x *Index) List(ctx context.Context, l rag.Listing) ([]rag.Listed, error) {
	if err := x.follow(ctx); err != nil {
		return nil, err
	}
	return x.Local.List(ctx, l)
}

// follow brings the index on this machine up to the last change.
func (x *Index) follow(ctx context.Context) error {
	at, err := x.Open(ctx, false)
	if err != nil {
		return err
	}
	heard, err := x.heard(ctx)
	if err == nil && at == nil {
		err = x.begin(ctx, &heard, "")
	}
	for err == nil && at != nil {
		var history string
		var news []changed
		err = at.Again(ctx, func(ctx context.Context) (err error) {
			history, news, err = read(ctx, at.Pool(), heard)
			return err
		})
		if err == nil && history != heard.of {
			err = x.begin(ctx, &heard, history)
		}
		if err != nil || len(news) == 0 {
			break
		}
		if err = x.apply(ctx, news); err == nil {
			heard.seq = news[len(news)-1].seq
			err = x.hear(ctx, heard)
		}
	}
	if err != nil {
		return fmt.Errorf("follow memory: %w", err)
	}
	return nil
}

// heard is up to which change the index on this machine has followed, and of which history:
// a schema that was put aside and made anew counts its changes from the first.
type heard struct {
	of  string
	seq int64
}

func (x *Index) heard(ctx context.Context) (h heard, err error) {
	found, err := x.Local.List(ctx, rag.Listing{Namespace: heardSpace, Project: x.Place, Keys: []string{heardKey}, Limit: 1})
	if err != nil || len(found) == 0 {
		return heard{}, err
	}
	of, seq, _ := strings.Cut(found[0].Text, " ")
	if h.seq, err = strconv.ParseInt(seq, 10, 64); err != nil {
		return heard{of: unknown}, nil //nolint:nilerr // everything is followed again
	}
	h.of = of
	return h, nil
}

// unknown is no history that there is.
const unknown = "?"

func (x *Index) hear(ctx context.Context, h heard) error {
	_, err := x.Local.Store(ctx, []rag.Row{{
		Namespace: heardSpace, Key: heardKey, Project: x.Place, Text: h.of + " " + strconv.FormatInt(h.seq, 10), Metadata: []byte("{}"), CreatedAt: time.UnixMilli(max(h.seq, 1)),
	}})
	return err
}

// begin follows another history from its first change: what the index has is of the one
// before. Without a history there is nothing to follow.
func (x *Index) begin(ctx context.Context, h *heard, history string) error {
	if h.of == history {
		return nil
	}
	if h.of != "" {
		for _, space := range []string{memory.Namespace, memory.SaidSpace, heardSpace} {
			if _, err := x.Local.Delete(ctx, rag.Deletion{Namespace: space, Project: x.Place, All: true}); err != nil {
				return err
			}
		}
	}
	if *h = (heard{of: history}); history == "" {
		return nil
	}
	return x.hear(ctx, *h)
}

// changed is a row as it was changed last.
type changed struct {
	rag.Row

	seq  int64
	gone bool
}

// read returns some changes after one, and of which history they are. They are those from
// the first where the server has another history, or has lost that change, as a standby has
// that was promoted.
func read(ctx context.Context, pool *pgxpool.Pool, after heard) (history string, news []changed, err error) {
	ctx, done := context.WithTimeout(ctx, deadline)
	defer done()
	rows, err := pool.Query(ctx, `SELECT h.history, r.* FROM (SELECT oid::text AS history FROM pg_namespace WHERE nspname = current_schema()) AS h
		LEFT JOIN LATERAL (SELECT seq, gone = 1, namespace, key, thread_id, chain_root, text, metadata, model, vector, created_at FROM memory_rows
			WHERE seq > $1 OR h.history <> $2 OR (SELECT max(seq) FROM memory_rows) < $1 ORDER BY seq LIMIT $3) AS r ON true`, after.seq, after.of, page)
	if err != nil {
		return "", nil, err
	}
	defer rows.Close()
	for rows.Next() {
		if rows.RawValues()[1] == nil { // nothing has changed
			return history, nil, errors.Join(rows.Scan(&history, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil), rows.Err())
		}
		var c changed
		var metadata string
		var vector []byte
		var created int64
		if err := rows.Scan(&history, &c.seq, &c.gone, &c.Namespace, &c.Key, &c.ThreadID, &c.ChainRoot, &c.Text, &metadata, &c.Model, &vector, &created); err != nil {
			return "", nil, err
		}
		c.Metadata, c.CreatedAt = []byte(metadata), time.UnixMilli(created).UTC()
		if c.Vector = decoded(vector); c.Vector == nil {
			c.Model = ""
		}
		news = append(news, c)
	}
	return history, news, rows.Err()
}

// apply makes changes in the index on this machine. A row that could not be one of an
// index is nobody's entry, and is left out.
func (x *Index) apply(ctx context.Context, news []changed) error {
	for _, c := range news {
		if c.Namespace != memory.Namespace && c.Namespace != memory.SaidSpace {
			continue
		}
		c.Project = x.Place
		var err error
		if c.gone {
			_, err = x.Local.Delete(ctx, rag.Deletion{Namespace: c.Namespace, Project: x.Place, Keys: []string{c.Key}})
		} else {
			_, err = x.Local.Store(ctx, []rag.Row{c.Row})
		}
		if _, unfit := errors.AsType[*rag.InputError](err); err != nil && !unfit {
			return err
		}
	}
	return nil
}

// encoded is a vector as it is stored; nil: there is none.
func encoded(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

// decoded is a vector that was stored; nil where that is none.
func decoded(b []byte) []float32 {
	if len(b) == 0 || len(b)%4 != 0 {
		return nil
	}
	v := make([]float32, 0, len(b)/4)
	for four := range slices.Chunk(b, 4) {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(four)))
	}
	return v
}
