package rag

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

// salvageBatch is how many ids of a damaged file are looked at in one turn.
const salvageBatch = 200

// salvageAll brings the rows of damaged files back. Each process that opens the
// index does so: one that died in the middle is followed by the next.
func (x *Index) salvageAll(ctx context.Context) (sum Damage, err error) {
	files, err := pending(x.db.path)
	for _, path := range files {
		if err == nil {
			err = x.salvage(ctx, path, &sum)
		}
	}
	return sum, err
}

// salvage brings the rows of one file back, batch by batch. Rows that were stored meanwhile
// under the same keys stay.
func (x *Index) salvage(ctx context.Context, path string, done *Damage) error {
	file := filepath.Base(path)
	if err := x.writeSalvage(ctx, "INSERT INTO salvage (file) VALUES (?) ON CONFLICT DO NOTHING", file); err != nil {
		return err
	}
	wreck, err := openWreck(ctx, path, x.db)
	if err != nil {
		return err
	}
	done.Unknown = done.Unknown || wreck.unknown
	for more := true; more && err == nil; {
		more, err = x.salvageBatch(ctx, wreck, file, done)
	}
	wreck.close()
	if err != nil {
		return err
	}
	done.Aside, err = sharedfile.SetAside(path, x.db.path+doneMark, x.opts.Now())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return x.writeSalvage(ctx, "DELETE FROM salvage WHERE file = ?", file)
}

func (x *Index) writeSalvage(ctx context.Context, statement, file string) error {
	return x.db.Write(ctx, sharedfile.Durable, nothing, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, file)
		return err
	})
}

func nothing() error { return nil }

// salvageBatch brings the next rows back, and says whether there may be more.
func (x *Index) salvageBatch(ctx context.Context, from *wreck, file string, done *Damage) (more bool, err error) {
	err = x.db.Write(ctx, sharedfile.Durable, nothing, func(ctx context.Context, tx *sql.Tx) error {
		var through int64
		err := tx.QueryRowContext(ctx, "SELECT through, saved, lost FROM salvage WHERE file = ?", file).Scan(&through, &done.Saved, &done.Lost)
		if errors.Is(err, sql.ErrNoRows) {
			more = false // another process was faster
			return nil
		}
		if err != nil {
			return err
		}
		if more = through < from.last; !more {
			return nil
		}
		w := x.newWriter(ctx, tx)
		through = from.skip(ctx, through)
		to := through + min(salvageBatch, from.last-through)
		rows, lost := from.rows(ctx, through, to)
		done.Lost += lost
		for _, row := range rows {
			if err := w.salvage(row, done); err != nil {
				return err
			}
		}
		if err := w.partChapters(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE salvage SET through = ?, saved = ?, lost = ? WHERE file = ?", to, done.Saved, done.Lost, file)
		return err
	})
	return more, err
}

// salvage writes one row, unless there is another of its key.
func (w *writer) salvage(row Row, done *Damage) error {
	accepted, err := check(row)
	if err != nil {
		done.Lost++
		return nil //nolint:nilerr // the row that was read is not the one that was stored
	}
	var taken bool
	err = w.tx.QueryRowContext(w.ctx, `SELECT EXISTS (SELECT 1 FROM entries WHERE project = ? AND key = ?
		AND namespace = (SELECT id FROM namespaces WHERE name = ?))`, row.Project, row.Key, row.Namespace).Scan(&taken)
	if err != nil || taken {
		return err
	}
	done.Saved++
	return w.put(accepted, &Stored{})
}

// wreck is a damaged file that rows are read of, as far as they can be.
type wreck struct {
	db    *sql.DB // nil: nothing can be read
	last  int64   // the highest id
	blind int64   // ids that may still be tried where nothing tells which there are
	// unknown says that the highest id cannot be read.
	unknown bool
}

// leastRow is how many bytes of a file a row takes at least.
const leastRow = 20

// openWreck opens a damaged file. Nothing is read of one that has lost its mark: it could be
// anybody's.
func openWreck(ctx context.Context, path string, of *database) (*wreck, error) {
	if !sharedfile.Exists(path) { // another process was faster
		return &wreck{}, nil
	}
	w := &wreck{db: sharedfile.Pool(path, 1, "query_only(1)")}
	d := &database{path: path, mark: of.mark}
	if err := d.Explain(d.checkMark(ctx, w.db)); err != nil {
		w.close()
		if errors.As(err, new(*DamageError)) {
			return &wreck{unknown: true}, nil
		}
		return nil, err
	}
	// Of the two, the number that was given last can be that of a row which is gone.
	if err := w.db.QueryRowContext(ctx, "SELECT ifnull(max(id), 0) FROM entries").Scan(&w.last); err != nil {
		err = w.db.QueryRowContext(ctx, "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'entries'").Scan(&w.last)
		w.unknown = err != nil
	}
	if info, err := os.Stat(path); err == nil {
		w.blind = info.Size() / leastRow
	}
	if ctx.Err() != nil {
		w.close()
	}
	return w, context.Cause(ctx)
}

func (w *wreck) close() {
	if w.db != nil {
		_ = w.db.Close() // that it is damaged is known
	}
}

// skip is the id after which reading goes on: where it can be told, that before the next row.
// Ids have gaps of any size: each row that was replaced has left one.
func (w *wreck) skip(ctx context.Context, after int64) int64 {
	if before, err := w.beforeNext(ctx, after); err == nil {
		return before
	}
	if w.blind -= salvageBatch; w.blind >= 0 {
		return after
	}
	for step := int64(salvageBatch); step <= (w.last-after)/2; step *= 2 {
		if before, err := w.beforeNext(ctx, after+step); err == nil {
			return before
		}
	}
	return w.last
}

// beforeNext is the id before that of the next row; the last one where there is no more.
func (w *wreck) beforeNext(ctx context.Context, after int64) (int64, error) {
	var next sql.NullInt64
	if err := w.db.QueryRowContext(ctx, "SELECT min(id) FROM entries WHERE id > ?", after).Scan(&next); err != nil {
		return 0, err
	}
	if !next.Valid {
		return w.last, nil
	}
	return next.Int64 - 1, nil
}

// rows are those that can be read whose id is after one and not after another, without
// vectors that cannot be.
func (w *wreck) rows(ctx context.Context, after, through int64) (rows []Row, lost int) {
	rows, err := w.read(ctx, after, through)
	if err == nil {
		return rows, 0
	}
	rows = nil
	for id := after; id < min(through, w.last); id++ {
		one, err := w.read(ctx, id, id+1)
		if err != nil {
			lost++
		}
		rows = append(rows, one...)
	}
	return rows, lost
}

func (w *wreck) read(ctx context.Context, after, through int64) (all []Row, err error) {
	found, err := w.db.QueryContext(ctx, `SELECT e.id, n.name, e.project, e.key, e.thread_id, e.chain_root, e.created_at, e.metadata, e.text
		FROM entries AS e JOIN namespaces AS n ON n.id = e.namespace WHERE e.id > ? AND e.id <= ?`, after, through)
	if err != nil {
		return nil, err
	}
	var ids []int64
	err = each(found, func(scan func(...any) error) error {
		var (
			r           Row
			id, created int64
			metadata    string
		)
		if err := scan(&id, &r.Namespace, &r.Project, &r.Key, &r.ThreadID, &r.ChainRoot, &created, &metadata, &r.Text); err != nil {
			return err
		}
		r.CreatedAt, r.Metadata = time.UnixMilli(created), json.RawMessage(metadata)
		all, ids = append(all, r), append(ids, id)
		return nil
	})
	for i, id := range ids {
		w.readVector(ctx, id, &all[i])
	}
	return all, err
}

// readVector gives a row its vector, if that can be read.
func (w *wreck) readVector(ctx context.Context, id int64, r *Row) {
	var (
		encoded []byte
		model   string
		size    int
	)
	err := w.db.QueryRowContext(ctx, `SELECT v.vector, m.name, m.dimension FROM vectors AS v JOIN models AS m ON m.id = v.model
		WHERE v.entry = ?`, id).Scan(&encoded, &model, &size)
	if v := decoded(encoded, size); err == nil && v != nil {
		r.Model, r.Vector = model, v
	}
}
