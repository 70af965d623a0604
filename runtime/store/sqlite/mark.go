package sqlite

import (
	"context"
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

// ensureMark is checkMark for a database that may be new, which gets its mark.
func (d *database) ensureMark(ctx context.Context, db *sql.DB) error {
	if d.mark == "" {
		return nil
	}
	return d.foreign(sharedfile.Mark(d.mark).Ensure(ctx, db))
}

// checkMark compares the mark of a database with the one that it must carry.
func (d *database) checkMark(ctx context.Context, db *sql.DB) error {
	if d.mark == "" {
		return nil
	}
	return d.foreign(sharedfile.Mark(d.mark).Check(ctx, db))
}

// foreign makes one without the mark a database that is set aside.
func (d *database) foreign(err error) error {
	if errors.Is(err, sharedfile.ErrForeign) {
		return &store.CorruptError{Path: d.path, Err: errForeign}
	}
	return err
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
	return explain(path, q.Retry(ctx, func() error { return sharedfile.Mark(mark).Put(ctx, db) }))
}
