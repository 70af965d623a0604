package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// batchSize is the number of items written in one transaction, some 50 ms of
// writing, so that other processes get their turn.
const batchSize = 250

// unread is the stamp of an item that could not be read, or that may change without
// another time. No row has it, so the next search looks again.
const unread = ""

// place names a row: the path alone is not enough, for user and project space
// may overlap.
type place struct {
	kind  item.Kind
	space item.Space
	path  string
}

func placeOf(e resolve.Entry) place { return place{e.Kind, e.Space, e.Path} }

// change is an item that is new or different from its row.
type change struct {
	entry resolve.Entry
	stamp string
}

// state is how far the index is from the files.
type state struct {
	items    int // that there are
	building int // of them, not indexed yet
	left     int // that are too many
	busy     bool
}

func (s state) String() string {
	switch {
	case s.busy:
		return "another process is writing it; the newest changes may be missing"
	case s.building > 0:
		return fmt.Sprintf("building, %d of %d items; search again for the rest", s.items-s.building, s.items)
	case s.left > 0:
		return fmt.Sprintf("%d of %d items; more are not indexed", s.items, s.items+s.left)
	}
	return ""
}

// refresh brings the index up to the files. Work that takes longer than the patience
// of a search is left to the builder.
//
// The records of threads are looked at for those alone who search in them: they are
// many, and there is another one with each thread.
func (x *Index) refresh(ctx context.Context, records bool) (state, error) {
	if building := x.builder.left(); building > 0 {
		return state{items: x.builder.items, building: building}, nil
	}
	changes, gone, s, err := x.compare(ctx, records)
	if err != nil {
		return s, err
	}
	soon, cancel := context.WithTimeout(ctx, x.patience)
	defer cancel()
	changes, err = x.bring(ctx, soon, changes, gone)
	if isBusy(err) { // what there is can be read all the same
		s.busy = true
		return s, nil
	}
	if err == nil && len(changes) > 0 {
		s.building = len(changes)
		x.builder.start(ctx, x, changes, s.items)
	}
	return s, err
}

// bring forgets what has gone and indexes what has changed, until time is up. It
// returns what is left.
func (x *Index) bring(ctx, soon context.Context, changes []change, gone []place) ([]change, error) {
	for len(gone) > 0 {
		n := min(batchSize, len(gone))
		if err := x.forget(ctx, gone[:n]); err != nil {
			return changes, err
		}
		gone = gone[n:]
	}
	for len(changes) > 0 && soon.Err() == nil {
		n := min(batchSize, len(changes))
		if err := x.index(ctx, changes[:n]); err != nil {
			return changes, err
		}
		changes = changes[n:]
	}
	return changes, nil
}

// compare lists the files, and says which rows are missing, old, or of files that
// have gone.
func (x *Index) compare(ctx context.Context, records bool) (changes []change, gone []place, s state, err error) {
	rows, err := x.rows(ctx, records)
	if err != nil {
		return nil, nil, s, err
	}
	list := x.src.Items
	if records {
		list = x.src.All
	}
	for _, kind := range item.Kinds() {
		entries, err := list(kind)
		if err != nil {
			return nil, nil, s, fmt.Errorf("list %s items: %w", kind, err)
		}
		if most := x.maxItems - s.items; len(entries) > most {
			s.left += len(entries) - most
			entries = entries[:most]
		}
		s.items += len(entries)
		for _, e := range entries {
			stamp, err := x.stamps.of(e)
			if err != nil {
				return nil, nil, s, err
			}
			at := placeOf(e)
			if old, known := rows[at]; !known || old != stamp || stamp == unread {
				changes = append(changes, change{e, stamp})
			}
			delete(rows, at)
		}
	}
	for at := range rows {
		gone = append(gone, at)
	}
	return changes, gone, s, ctx.Err()
}

// rows reads the stamps that the index has.
func (x *Index) rows(ctx context.Context, records bool) (rows map[place]string, err error) {
	result, err := x.db.QueryContext(ctx, "SELECT kind, space, path, stamp FROM items WHERE ? OR NOT (kind = ? AND id GLOB ?)",
		records, item.Knowledge, item.ThreadRecords+"/*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	rows = make(map[place]string)
	for result.Next() {
		var at place
		var stamp string
		if err := result.Scan(&at.kind, &at.space, &at.path, &stamp); err != nil {
			return nil, err
		}
		rows[at] = stamp
	}
	return rows, result.Err()
}

// forget removes the rows of items that are gone.
func (x *Index) forget(ctx context.Context, gone []place) error {
	err := x.writing(ctx, func(w *writer) error {
		for _, at := range gone {
			if err := w.remove(ctx, at); err != nil {
				return err
			}
		}
		x.step("forgetting")
		return nil
	})
	x.step("forgotten")
	return err
}

// index reads items and writes their rows. Reading is done before the write lock
// is taken.
func (x *Index) index(ctx context.Context, changes []change) error {
	docs := make([]*document, len(changes))
	for i := range changes {
		docs[i] = x.read(&changes[i])
	}
	x.step("read")
	err := x.writing(ctx, func(w *writer) error {
		for i, c := range changes {
			if err := w.write(ctx, c, docs[i]); err != nil {
				return err
			}
		}
		x.step("writing")
		return nil
	})
	x.step("written")
	return err
}

// read makes the document of an item, nil when the file has gone since it was
// listed.
func (x *Index) read(c *change) *document {
	src, err := resolve.Read(x.stamps.roots, c.entry)
	if isGone(err) {
		return nil
	}
	if err != nil {
		c.stamp = unread
		doc := broken(c.entry, "cannot be read", nil)
		return &doc
	}
	doc := describe(c.entry, src)
	return &doc
}
