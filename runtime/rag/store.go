package rag

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// Store puts rows into the index, all or none. A row replaces the one of its key. The error
// is an [InputError] when one of them is not accepted.
//
// Other writers wait meanwhile: many thousand rows belong into several calls.
func (x *Index) Store(ctx context.Context, rows []Row) (Stored, error) {
	accepted := make([]checked, len(rows))
	for i, r := range rows {
		var err error
		if accepted[i], err = check(r); err != nil {
			if len(rows) > 1 {
				err = fmt.Errorf("row %d, key %.64q: %w", i+1, r.Key, err)
			}
			return Stored{}, err
		}
	}
	if len(rows) == 0 {
		return Stored{}, nil
	}
	var done Stored
	err := x.change(ctx, func(w *writer) error {
		done = Stored{}
		for _, row := range accepted {
			if err := w.put(row, &done); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

// change writes in one transaction, parts the vectors into chapters, and afterwards makes
// the files of those that are new.
func (x *Index) change(ctx context.Context, f func(*writer) error) error {
	parted := false
	err := x.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		w := x.newWriter(ctx, tx)
		if err := f(w); err != nil {
			return err
		}
		if err := w.partChapters(); err != nil {
			return err
		}
		parted = w.parted
		return nil
	})
	if err == nil && parted {
		x.updateCodes(ctx)
	}
	return err
}

func (x *Index) newWriter(ctx context.Context, tx *sql.Tx) *writer {
	return &writer{
		ctx: ctx, tx: tx, chapter: int64(x.opts.chapter),
		namespaces: map[string]int64{}, models: map[modelKey]int64{}, touched: map[space]bool{},
	}
}

// space is the vectors of one model in one namespace.
type space struct{ namespace, model int64 }

type modelKey struct {
	name      string
	dimension int
}

// writer writes rows within one transaction.
type writer struct {
	ctx        context.Context //nolint:containedctx // lives exactly as long as the transaction
	tx         *sql.Tx
	chapter    int64 // how many vectors a new chapter has
	namespaces map[string]int64
	models     map[modelKey]int64
	touched    map[space]bool // spaces that have other vectors than before
	parted     bool           // there are other chapters than before
}

// put writes one row in the place of the one that has its key.
func (w *writer) put(row checked, done *Stored) error {
	namespace, err := w.namespace(row.Namespace)
	if err != nil {
		return err
	}
	var model int64
	if row.unit != nil {
		if model, err = w.model(row.Model, len(row.unit)); err != nil {
			return err
		}
	}
	former, err := w.remove(namespace, row)
	if err != nil {
		return err
	}
	if former.id == 0 {
		done.Added++
	} else {
		done.Replaced++
	}
	var encoded []byte
	if row.unit != nil {
		encoded = vector.Encode(row.unit)
	} else if former.vector != nil {
		model, encoded = former.model, former.vector
	}
	added, err := w.tx.ExecContext(w.ctx,
		`INSERT INTO entries (namespace, project, key, thread_id, chain_root, created_at, model, metadata, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		namespace, row.Project, row.Key, row.ThreadID, row.ChainRoot, row.CreatedAt.UnixMilli(), model, string(row.Metadata), row.Text)
	if err != nil {
		return err
	}
	id, err := added.LastInsertId()
	if err != nil {
		return err
	}
	if err := putWords(w.ctx, w.tx, id, namespace, row.Text); err != nil || encoded == nil {
		return err
	}
	return w.addVector(id, space{namespace, model}, encoded)
}

func (w *writer) addVector(entry int64, s space, encoded []byte) error {
	w.touched[s] = true
	_, err := w.tx.ExecContext(w.ctx, "INSERT INTO vectors (entry, namespace, model, vector) VALUES (?, ?, ?, ?)",
		entry, s.namespace, s.model, encoded)
	return err
}

// formerRow is a row that is replaced.
type formerRow struct {
	id, model int64
	vector    []byte // of the same text; nil: none
}

// remove deletes the row of the same key.
func (w *writer) remove(namespace int64, row checked) (former formerRow, err error) {
	var same bool
	err = w.tx.QueryRowContext(w.ctx, `SELECT e.id, e.model, e.text = ?, v.vector
		FROM entries e LEFT JOIN vectors v ON v.entry = e.id WHERE e.namespace = ? AND e.project = ? AND e.key = ?`,
		row.Text, namespace, row.Project, row.Key).Scan(&former.id, &former.model, &same, &former.vector)
	if errors.Is(err, sql.ErrNoRows) {
		return formerRow{}, nil
	}
	if err != nil {
		return former, err
	}
	if !same {
		former.vector = nil
	}
	if former.model != 0 {
		w.touched[space{namespace, former.model}] = true
	}
	_, err = w.tx.ExecContext(w.ctx, "DELETE FROM entries WHERE id = ?", former.id)
	return former, err
}

func (w *writer) namespace(name string) (id int64, err error) {
	if id, ok := w.namespaces[name]; ok {
		return id, nil
	}
	id, err = w.named("SELECT id FROM namespaces WHERE name = ?", "INSERT INTO namespaces (name) VALUES (?)", name)
	w.namespaces[name] = id
	return id, err
}

func (w *writer) model(name string, dimension int) (id int64, err error) {
	key := modelKey{name, dimension}
	if id, ok := w.models[key]; ok {
		return id, nil
	}
	id, err = w.named("SELECT id FROM models WHERE name = ? AND dimension = ?",
		"INSERT INTO models (name, dimension) VALUES (?, ?)", name, dimension)
	w.models[key] = id
	return id, err
}

// named is the id of what has that name, which is added where it is missing.
func (w *writer) named(find, add string, args ...any) (id int64, err error) {
	err = w.tx.QueryRowContext(w.ctx, find, args...).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	added, err := w.tx.ExecContext(w.ctx, add, args...)
	if err != nil {
		return 0, err
	}
	return added.LastInsertId()
}
