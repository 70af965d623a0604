package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// batchSize is the number of items written in one transaction, some 50 ms of
// writing, so that other processes get their turn.
const batchSize = 500

// unread is the stamp of an item that could not be read. No item has it, so the
// next search tries again.
const unread = ""

// place names a row: the path alone is not enough, for user and project space
// may overlap.
type place struct {
	kind  item.Kind
	space item.Space
	path  string
}

// row is an item as the index has it.
type row struct {
	doc   int64
	stamp string
}

// change is an item that is new or different from its row.
type change struct {
	entry resolve.Entry
	stamp string
}

// refresh brings the index up to the files.
func (x *Index) refresh(ctx context.Context) error {
	rows, err := x.rows(ctx)
	if err != nil {
		return err
	}
	var changes []change
	for _, kind := range item.Kinds() {
		entries, err := x.src.All(kind)
		if err != nil {
			return fmt.Errorf("list %s items: %w", kind, err)
		}
		for _, e := range entries {
			stamp, err := x.stamps.of(e)
			if err != nil {
				return err
			}
			at := place{e.Kind, e.Space, e.Path}
			old, known := rows[at]
			if !known || old.stamp != stamp {
				changes = append(changes, change{e, stamp})
			}
			delete(rows, at)
		}
	}
	if err := x.forget(ctx, rows); err != nil {
		return err
	}
	for len(changes) > 0 {
		n := min(batchSize, len(changes))
		if err := x.index(ctx, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// rows reads what the index has.
func (x *Index) rows(ctx context.Context) (rows map[place]row, err error) {
	result, err := x.db.QueryContext(ctx, "SELECT doc, kind, space, path, stamp FROM items")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	rows = make(map[place]row)
	for result.Next() {
		var at place
		var r row
		if err := result.Scan(&r.doc, &at.kind, &at.space, &at.path, &r.stamp); err != nil {
			return nil, err
		}
		rows[at] = r
	}
	return rows, result.Err()
}

// forget removes the rows of items that are gone.
func (x *Index) forget(ctx context.Context, gone map[place]row) error {
	if len(gone) == 0 {
		return nil
	}
	return inTx(ctx, x.db, func(tx *sql.Tx) error {
		for at := range gone {
			if err := remove(ctx, tx, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// index reads items and writes their rows. Reading is done before the write lock
// is taken.
func (x *Index) index(ctx context.Context, changes []change) error {
	docs := make([]*document, len(changes))
	for i := range changes {
		docs[i] = x.read(&changes[i])
	}
	return inTx(ctx, x.db, func(tx *sql.Tx) error {
		for i, c := range changes {
			if err := remove(ctx, tx, place{c.entry.Kind, c.entry.Space, c.entry.Path}); err != nil {
				return err
			}
			if docs[i] == nil {
				continue
			}
			if err := insert(ctx, tx, c, *docs[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// read makes the document of an item, nil when the file has gone since it was
// listed.
func (x *Index) read(c *change) *document {
	src, err := readEntry(x.stamps.roots, c.entry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		c.stamp = unread
		doc := broken(c.entry, "cannot be read: "+err.Error(), nil)
		return &doc
	}
	doc := describe(c.entry, src)
	return &doc
}

// remove deletes an item from both tables. It looks the row up itself, for
// another process may have written a new one.
func remove(ctx context.Context, tx *sql.Tx, at place) error {
	var doc int64
	err := tx.QueryRowContext(ctx, "DELETE FROM items WHERE kind = ? AND space = ? AND path = ? RETURNING doc",
		at.kind, at.space, at.path).Scan(&doc)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM words WHERE rowid = ?", doc)
	return err
}

func insert(ctx context.Context, tx *sql.Tx, c change, d document) error {
	e := c.entry
	spaceRank, extRank := ranks(e)
	result, err := tx.ExecContext(ctx,
		`INSERT INTO items (kind, id, space, path, space_rank, ext_rank, stamp, name, description, category)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Kind, e.ID, e.Space, e.Path, spaceRank, extRank, c.stamp,
		clean(d.name), clean(d.description), clean(d.category))
	if err != nil {
		return err
	}
	doc, err := result.LastInsertId()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		"INSERT INTO words (rowid, title, name, description, category, body) VALUES (?, ?, ?, ?, ?, ?)",
		append([]any{doc}, d.columns(e.ID)...)...)
	return err
}
