package rag

import (
	"context"
	"database/sql"
)

// Compacted says what became of the size of an index, in bytes.
type Compacted struct {
	Before, After int64
	Kept          string // why it is not as small as it could be; empty: it is
}

// Compact gives the room of what was deleted back to the operating system, and with it the
// last of its text. Writers have their turn in between.
func (x *Index) Compact(ctx context.Context) (c Compacted, err error) {
	db, err := x.open(ctx, false)
	if err != nil || db == nil {
		return c, err
	}
	// FTS5 keeps the words of deleted texts until it merges what it has written.
	err = x.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO words (words) VALUES ('optimize')")
		return err
	})
	if err != nil {
		return c, err
	}
	done, err := db.Vacuum(ctx, false)
	return Compacted{Before: done.Before, After: done.After, Kept: done.Kept}, err
}
