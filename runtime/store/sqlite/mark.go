package sqlite

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

// errForeign says that a database lacks the mark of its place.
var errForeign = errors.New("it is not the database that was made here")

// ensureMark is checkMark for a database that may be new: it gets its mark in one
// transaction, before anything else is in it.
func (d *database) ensureMark(ctx context.Context, db *sql.DB) error {
	if d.mark == "" {
		return nil
	}
	if fresh, err := isFresh(ctx, db); err != nil {
		return err
	} else if fresh {
		return setMark(ctx, db, d.mark)
	}
	return d.checkMark(ctx, db)
}

// isFresh reports whether nothing is in a database.
func isFresh(ctx context.Context, db *sql.DB) (bool, error) {
	var anything bool
	err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master)").Scan(&anything)
	return !anything, err
}

// checkMark compares the mark of a database with the one that it must carry. One in
// which there is nothing needs none.
func (d *database) checkMark(ctx context.Context, db *sql.DB) error {
	if d.mark == "" {
		return nil
	}
	if fresh, err := isFresh(ctx, db); err != nil || fresh {
		return err
	}
	found, err := readMark(ctx, db)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(found), []byte(d.mark)) != 1 {
		return &store.CorruptError{Path: d.path, Err: errForeign}
	}
	return nil
}

// readMark returns the mark; empty when there is none. A view of that name is none:
// it could say anything.
func readMark(ctx context.Context, db *sql.DB) (mark string, err error) {
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

func setMark(ctx context.Context, db *sql.DB, mark string) error {
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
	if _, err := tx.ExecContext(ctx, "INSERT INTO place (mark) VALUES (?)", mark); err != nil {
		return err
	}
	return tx.Commit()
}

// Files are the paths of the databases in dir.
func Files(dir string) []string {
	return []string{filepath.Join(dir, registryFile), filepath.Join(dir, ledgerFile)}
}

// Claim gives the databases in dir, as far as they are there, the marks of their
// place. It is for those of before there were marks, of which something else shows
// whose they are.
func Claim(ctx context.Context, dir string, mark func(database string) string) error {
	for file, name := range names {
		if err := claim(ctx, dir, file, mark(name)); err != nil {
			return fmt.Errorf("mark %s: %w", filepath.Join(dir, file), err)
		}
	}
	return nil
}

func claim(ctx context.Context, dir, file, mark string) (err error) {
	path := filepath.Join(dir, file)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil // opening the store says what is wrong
	}
	q, err := sharedfile.OpenQueue(lockPath(dir, names[file]), Options{}.shared())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	release, err := q.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	db := sharedfile.Pool(path, 1)
	defer func() { err = errors.Join(err, db.Close()) }()
	return explain(path, q.Retry(ctx, func() error {
		found, err := readMark(ctx, db)
		if err != nil || found == mark {
			return err
		}
		return setMark(ctx, db, mark)
	}))
}
