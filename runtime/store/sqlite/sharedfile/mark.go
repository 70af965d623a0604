package sharedfile

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
)

// Mark tells for which place a file was made. It stands in a table of its own, "place",
// and whoever does not know it can make no file that passes.
type Mark string

// ErrForeign says that a file lacks the mark of its place.
var ErrForeign = errors.New("it is not the one that was made here")

// Ensure is [Mark.Check] for a file that may be new: it gets its mark in one transaction,
// before anything else is in it.
func (m Mark) Ensure(ctx context.Context, db *sql.DB) error {
	if fresh, err := IsFresh(ctx, db); err != nil {
		return err
	} else if fresh {
		return m.put(ctx, db)
	}
	return m.Check(ctx, db)
}

// Check compares the mark of a file with this one. A file in which there is nothing needs
// none. Of any other the error is [ErrForeign].
func (m Mark) Check(ctx context.Context, db *sql.DB) error {
	if fresh, err := IsFresh(ctx, db); err != nil || fresh {
		return err
	}
	stands, err := m.Stands(ctx, db)
	if err == nil && !stands {
		err = ErrForeign
	}
	return err
}

// Stands reports whether a file has this mark.
func (m Mark) Stands(ctx context.Context, db *sql.DB) (bool, error) {
	found, err := readMark(ctx, db)
	return err == nil && subtle.ConstantTimeCompare([]byte(found), []byte(m)) == 1, err
}

// Put gives a file this mark in place of any that it has.
func (m Mark) Put(ctx context.Context, db *sql.DB) error {
	found, err := readMark(ctx, db)
	if err != nil || found == m {
		return err
	}
	return m.put(ctx, db)
}

func (m Mark) put(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	for _, statement := range []string{"DROP TABLE IF EXISTS place", "CREATE TABLE place (mark TEXT NOT NULL) STRICT"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO place (mark) VALUES (?)", string(m)); err != nil {
		return err
	}
	return tx.Commit()
}

// IsFresh reports whether nothing is in a file.
func IsFresh(ctx context.Context, db *sql.DB) (bool, error) {
	var anything bool
	err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master)").Scan(&anything)
	return !anything, err
}

// readMark returns the mark; empty when there is none. A view of that name is none: it
// could say anything.
func readMark(ctx context.Context, db *sql.DB) (mark Mark, err error) {
	var tables int
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'place'").Scan(&tables)
	if err != nil || tables == 0 {
		return "", err
	}
	err = db.QueryRowContext(ctx, "SELECT CAST(mark AS TEXT) FROM place LIMIT 1").Scan(&mark)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return mark, err
}

// UseWAL gives a file its write-ahead log. It is a property of the file, so that it is set
// where a file is made and not on every open.
func UseWAL(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fmt.Errorf("switch to a write-ahead log: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("cannot use a write-ahead log (journal mode stays %q); is the folder on a network file system?", mode)
	}
	return nil
}
