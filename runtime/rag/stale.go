package rag

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// Want is what vectors of a namespace should be.
type Want struct {
	Namespace string
	Model     string
	Dimension int // 0: any
}

// StaleRow is a row that has no vector of the model that is wanted. Its id names the text
// that it has now: a row that is replaced gets another.
type StaleRow struct {
	ID                 int64
	Project, Key, Text string
}

// Stale returns rows without a vector of the model that is wanted, of all projects, whose
// id comes after one, in the order of their ids. To embed all of them again, pass the last
// id on until none is returned; beginning anew with 0 finds the rest. [Index.SetVectors]
// takes the results.
func (x *Index) Stale(ctx context.Context, w Want, after int64, batch int) (stale []StaleRow, err error) {
	if err := checkNames(map[string]string{"namespace": w.Namespace, "model": w.Model}); err != nil {
		return nil, err
	}
	if batch < 1 {
		return nil, refuse("batch", "%d; valid are 1 and more", batch)
	}
	err = x.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT e.id, e.project, e.key, e.text FROM entries AS e
			WHERE e.namespace = (SELECT id FROM namespaces WHERE name = ?) AND e.id > ?
			AND e.model NOT IN (SELECT id FROM models WHERE name = ? AND (? = 0 OR dimension = ?))
			ORDER BY e.id LIMIT ?`, w.Namespace, after, w.Model, w.Dimension, w.Dimension, batch)
		if err != nil {
			return err
		}
		stale = nil
		return each(rows, func(scan func(...any) error) error {
			var r StaleRow
			err := scan(&r.ID, &r.Project, &r.Key, &r.Text)
			stale = append(stale, r)
			return err
		})
	})
	return stale, err
}

// Embedded is the vector of a row.
type Embedded struct {
	ID     int64 // of a StaleRow
	Vector []float32
}

// SetVectors gives rows the vectors that a model has made of them, and returns how many had
// them set: rows that were replaced or deleted meanwhile are left out. Nothing is set when one
// of the vectors is not accepted.
func (x *Index) SetVectors(ctx context.Context, model string, vectors []Embedded) (set int, err error) {
	if err := checkName("model", model, true); err != nil {
		return 0, err
	}
	units := make([][]float32, len(vectors))
	for i, v := range vectors {
		if units[i], err = checkVector(model, v.Vector); err != nil {
			return 0, fmt.Errorf("vector %d: %w", i+1, err)
		}
	}
	if db, err := x.open(ctx, false); len(vectors) == 0 || err == nil && db == nil {
		return 0, nil
	}
	err = x.change(ctx, func(w *writer) error {
		set = 0
		for i, v := range vectors {
			done, err := w.embed(v.ID, model, units[i])
			if err != nil {
				return err
			}
			if done {
				set++
			}
		}
		return nil
	})
	return set, err
}

// embed gives an entry another vector, if it is still there.
func (w *writer) embed(entry int64, model string, unit []float32) (done bool, err error) {
	var namespace, former int64
	err = w.tx.QueryRowContext(w.ctx, "SELECT namespace, model FROM entries WHERE id = ?", entry).Scan(&namespace, &former)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	id, err := w.model(model, len(unit))
	if err != nil {
		return false, err
	}
	if former != 0 {
		w.touched[space{namespace, former}] = true
	}
	if _, err := w.tx.ExecContext(w.ctx, "DELETE FROM vectors WHERE entry = ?", entry); err != nil {
		return false, err
	}
	if _, err := w.tx.ExecContext(w.ctx, "UPDATE entries SET model = ? WHERE id = ?", id, entry); err != nil {
		return false, err
	}
	return true, w.addVector(entry, space{namespace, id}, vector.Encode(unit))
}
