package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

// migrations holds one folder a database, of files numbered from 0001.
//
//go:embed migrations/*/*.sql
var migrations embed.FS

// schemas holds, for each database, what the migrations make of a new one: the statements
// of its tables, one after the other with an empty line between. A test writes it from
// the migrations.
//
//go:embed schemas/*.sql
var schemas embed.FS

// migrate puts a database into WAL mode and brings its schema up to this
// binary's. The caller stands first in the database's queue, so of several
// processes that open a new folder at once one creates and the others find.
func migrate(ctx context.Context, db *sql.DB, dir, folder string) error {
	if err := sharedfile.UseWAL(ctx, db); err != nil {
		return err
	}
	if isNew, err := isEmpty(ctx, db); err != nil {
		return err
	} else if isNew {
		if err := noteLoss(ctx, db, dir); err != nil {
			return err
		}
		return create(ctx, db, folder)
	}
	provider, err := newProvider(db, folder)
	if err != nil {
		return err
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > known {
		return fmt.Errorf("schema version %d, this binary knows %d: %w", current, known, store.ErrTooNew)
	}
	switch current {
	case known:
		return nil
	case 0:
		if err := noteLoss(ctx, db, dir); err != nil {
			return err
		}
	}
	_, err = provider.Up(ctx)
	return err
}

// isEmpty reports whether a database has nothing yet but the mark of its place.
func isEmpty(ctx context.Context, db *sql.DB) (bool, error) {
	var objects int
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name <> 'place'").Scan(&objects)
	return objects == 0, err
}

// create makes the tables of a new database as all migrations leave them, in one
// transaction: to apply one migration after the other takes several times as long.
func create(ctx context.Context, db *sql.DB, folder string) error {
	schema, err := schemas.ReadFile("schemas/" + folder + ".sql")
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	for statement := range strings.SplitSeq(string(schema), endOfStatement) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create the tables of the %s: %w", folder, err)
		}
	}
	return tx.Commit()
}

// endOfStatement stands between the statements of a schema; no statement has an empty
// line in it.
const endOfStatement = ";\n\n"

// isCurrent reports whether a database needs nothing of what migrate does. It only
// reads.
func isCurrent(ctx context.Context, db *sql.DB, folder string) (bool, error) {
	files, err := fs.Glob(migrations, "migrations/"+folder+"/*.sql")
	if err != nil {
		return false, err
	}
	var (
		mode     string
		applied  int
		versions = len(files) // they are numbered from 1 without a gap
	)
	err = errors.Join(
		db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode),
		db.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&applied))
	return mode == "wal" && applied == versions, err
}

func newProvider(db *sql.DB, folder string) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
}

// The values of PRAGMA user_version.
const (
	whole = 0
	lossy = 1 // the rows of threads that had been there are missing
)

// noteLoss marks a database that is made anew in a folder of threads. They have
// their folders there, and nothing else has one.
func noteLoss(ctx context.Context, db *sql.DB, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || !slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		return err
	}
	return setLoss(ctx, db, lossy)
}

func setLoss(ctx context.Context, on executor, value int) error {
	_, err := on.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(value))
	return err
}

// executor is a *sql.DB or *sql.Tx.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
