package rag

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/pressly/goose/v3"
	lib "modernc.org/sqlite/lib"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

// migrations are numbered from 0001.
//
//go:embed migrations/*.sql
var migrations embed.FS

// steps are the migrations that follow those.
func steps() []*goose.Migration {
	return []*goose.Migration{
		goose.NewGoMigration(2, &goose.GoFunc{RunTx: putAllWords}, nil),
	}
}

// database is the file of an index.
type database struct {
	*sharedfile.File

	path, mark string
	named      bool // by a person, see Home.Mark
}

// newDatabase describes the file of a place.
func newDatabase(path, mark string) *database {
	d := &database{path: path, mark: mark}
	if mark == "" {
		d.mark, d.named = "index of rye-mcp", true
	}
	return d
}

var _ sharedfile.Owner = (*database)(nil)

// openDatabase opens the file of a place, making and migrating it where needed.
func openDatabase(ctx context.Context, home Home, opts Options) (d *database, err error) {
	path, err := filepath.Abs(home.Path)
	if err != nil {
		return nil, err
	}
	if err := prepareDir(path); err != nil {
		return nil, err
	}
	d = newDatabase(path, home.Mark)
	if d.File, err = sharedfile.Open(ctx, path, lockPath(path), d, opts.Shared); err != nil {
		return nil, err
	}
	return d, nil
}

// lockPath is the file whose lock is the queue of writers.
func lockPath(path string) string { return path + ".lock" }

// read runs f in a transaction that only reads.
func (d *database) read(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	for {
		if err := d.Follow(ctx); err != nil {
			return err
		}
		err := d.Read(ctx, func(r sharedfile.Reader) (err error) {
			tx, err := r.DB.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, tx.Rollback()) }()
			return f(ctx, tx)
		})
		if err == nil || ctx.Err() != nil || !d.Replaced() {
			return err
		}
	}
}

// Ready implements [sharedfile.Owner].
func (d *database) Ready(ctx context.Context, db *sql.DB) bool {
	current, err := isCurrent(ctx, db)
	return current && err == nil && d.checkMark(ctx, db) == nil
}

// Prepare implements [sharedfile.Owner].
func (d *database) Prepare(ctx context.Context, db *sql.DB) error {
	// In a database that has nothing yet, what is deleted later can be given back in parts.
	if _, err := db.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
		return err
	}
	if err := d.ensureMark(ctx, db); err != nil {
		return err
	}
	return migrate(ctx, db)
}

// Opened implements [sharedfile.Owner].
func (*database) Opened(int) {}

// MayFollow implements [sharedfile.Owner].
func (*database) MayFollow() error { return nil }

// CannotFollow implements [sharedfile.Owner].
func (*database) CannotFollow(why error) error {
	return fmt.Errorf("another file is in the place of the index: %w", why)
}

// Explain implements [sharedfile.Owner].
func (d *database) Explain(err error) error {
	code, ok := sharedfile.Code(err)
	if !ok {
		return err
	}
	switch code {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return &DamageError{Path: d.path, Err: err}
	case lib.SQLITE_FULL:
		return fmt.Errorf("%s: %w: %w", d.path, syscall.ENOSPC, err)
	}
	return fmt.Errorf("%s: %w", d.path, err)
}

// isCurrent reports whether a database needs nothing of what migrate does. It only reads.
func isCurrent(ctx context.Context, db *sql.DB) (bool, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return false, err
	}
	var (
		mode    string
		applied int
	)
	err = errors.Join(
		db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode),
		db.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&applied))
	return mode == "wal" && applied == len(files)+len(steps()), err
}

// migrate puts a database into WAL mode and brings its schema up to this binary's. The
// caller stands first in the queue of writers.
func migrate(ctx context.Context, db *sql.DB) error {
	if err := sharedfile.UseWAL(ctx, db); err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(steps()...))
	if err != nil {
		return err
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > known {
		return fmt.Errorf("schema version %d, this binary knows %d: %w", current, known, ErrTooNew)
	}
	_, err = provider.Up(ctx)
	return err
}
