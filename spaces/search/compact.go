package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Forget takes knowledge entries of the project out of the index, whose files are gone.
// The next search would do so too. While another process writes the index nothing is
// done.
func (x *Index) Forget(ctx context.Context, ids []string) error {
	return x.inTurn(ctx, func() error {
		list, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		docs, err := x.docsOf(ctx, string(list))
		if err != nil || len(docs) == 0 {
			return err
		}
		return x.writing(ctx, func(w *writer) error {
			for _, doc := range docs {
				if err := w.removeRow(ctx, doc); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// docsOf are the rows of knowledge of the project with the ids of a JSON list.
func (x *Index) docsOf(ctx context.Context, ids string) (docs []int64, err error) {
	rows, err := x.db.QueryContext(ctx, `SELECT doc FROM items
		WHERE kind = ? AND space = ? AND id IN (SELECT value FROM json_each(?))`, item.Knowledge, item.Project, ids)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var doc int64
		if err := rows.Scan(&doc); err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, rows.Err()
}

// Compacted says what became of an index. Sizes are in bytes, with its log.
type Compacted struct {
	Before, After int64
	Kept          string // why it is not smaller
}

// Compact writes the index anew without what is in no use. While another process writes
// it nothing is done; one that searches meanwhile finds what there was.
func (x *Index) Compact(ctx context.Context) (c Compacted, err error) {
	err = x.inTurn(ctx, func() error {
		c.Before = x.bytes()
		for _, statement := range []string{
			"INSERT INTO words (words) VALUES ('optimize')", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)",
		} {
			if _, err := x.db.ExecContext(ctx, statement); isBusy(err) {
				c.Kept = "another process writes it"
				break
			} else if err != nil {
				return err
			}
		}
		c.After = x.bytes()
		return nil
	})
	return c, err
}

// inTurn runs f when no search of this process runs, on an open index.
func (x *Index) inTurn(ctx context.Context, f func() error) error {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if x.closed {
		return errors.New("the index is closed")
	}
	if x.db == nil {
		if err := x.open(ctx); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// bytes is how much room the file takes; 0 in memory.
func (x *Index) bytes() (sum int64) {
	for _, suffix := range sideFiles {
		if info, err := os.Stat(x.path + suffix); err == nil && x.path != "" {
			sum += info.Size()
		}
	}
	return sum
}

// Exists reports whether there is an index at a path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return path != "" && !errors.Is(err, fs.ErrNotExist)
}
