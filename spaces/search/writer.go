package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// writer writes rows within one transaction. Its statements are prepared once, and each
// writes one row: for one that writes several, FTS5 empties its memory first.
type writer struct {
	find, insert, words     *sql.Stmt
	deleteItem, deleteWords *sql.Stmt
}

// writing runs change with a writer, all of whose changes become one.
func (x *Index) writing(ctx context.Context, change func(*writer) error) error {
	return inTx(ctx, x.db, func(tx *sql.Tx) (err error) {
		w := &writer{}
		for _, s := range []struct {
			to  **sql.Stmt
			sql string
		}{
			{&w.find, "SELECT doc, stamp FROM items WHERE kind = ? AND space = ? AND path = ?"},
			{&w.insert, `INSERT INTO items (kind, id, space, path, space_rank, ext_rank, stamp, changed, name, facts)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
			{&w.words, "INSERT INTO words (rowid, title, name, description, category, body, every) VALUES (?, ?, ?, ?, ?, ?, ?)"},
			{&w.deleteItem, "DELETE FROM items WHERE doc = ?"},
			{&w.deleteWords, "DELETE FROM words WHERE rowid = ?"},
		} {
			// The end of the transaction closes it.
			if *s.to, err = tx.PrepareContext(ctx, s.sql); err != nil { //nolint:sqlclosecheck // see above
				return err
			}
		}
		return change(w)
	})
}

// row looks for what the index has of an item; doc is 0 for nothing. Another process
// may have written it after it was compared with its file.
func (w *writer) row(ctx context.Context, at place) (doc int64, stamp string, err error) {
	err = w.find.QueryRowContext(ctx, at.kind, at.space, at.path).Scan(&doc, &stamp)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", nil
	}
	return doc, stamp, err
}

// remove deletes an item.
func (w *writer) remove(ctx context.Context, at place) error {
	doc, _, err := w.row(ctx, at)
	if err != nil || doc == 0 {
		return err
	}
	return w.removeRow(ctx, doc)
}

func (w *writer) removeRow(ctx context.Context, doc int64) error {
	for _, s := range []*sql.Stmt{w.deleteItem, w.deleteWords} {
		if _, err := s.ExecContext(ctx, doc); err != nil {
			return err
		}
	}
	return nil
}

// write replaces the row of an item; without a document it only removes it.
func (w *writer) write(ctx context.Context, c change, d *document) error {
	doc, stamp, err := w.row(ctx, placeOf(c.entry))
	if err != nil {
		return err
	}
	if doc != 0 {
		if d != nil && stamp == c.stamp && stamp != unread { // another process was faster
			return nil
		}
		if err := w.removeRow(ctx, doc); err != nil {
			return err
		}
	}
	if d == nil {
		return nil
	}
	return w.add(ctx, c, *d)
}

func (w *writer) add(ctx context.Context, c change, d document) error {
	e := c.entry
	spaceRank, extRank := ranks(e)
	var changed int64
	if !e.ModTime.IsZero() {
		changed = e.ModTime.UnixMicro()
	}
	facts, err := json.Marshal(d.allFacts(e.Kind))
	if err != nil {
		return err
	}
	result, err := w.insert.ExecContext(ctx, e.Kind, e.ID, e.Space, e.Path, spaceRank, extRank, c.stamp, changed, clean(d.name), string(facts))
	if err != nil {
		return err
	}
	doc, err := result.LastInsertId()
	if err != nil {
		return err
	}
	_, err = w.words.ExecContext(ctx, append([]any{doc}, d.columns(e.ID)...)...)
	return err
}
