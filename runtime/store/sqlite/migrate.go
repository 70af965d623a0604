package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// migrations holds one folder a database, of files numbered from 0001.
//
//go:embed migrations/*/*.sql
var migrations embed.FS

// migrate puts a database into WAL mode and brings its schema up to this
// binary's. The caller stands first in the database's queue, so of several
// processes that open a new folder at once one creates and the others find.
func migrate(ctx context.Context, db *sql.DB, folder string) error {
	// WAL is a property of the file, so it is set here and not on every open.
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fmt.Errorf("switch to a write-ahead log: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("cannot use a write-ahead log (journal mode stays %q); is the folder on a network file system?", mode)
	}
	files, err := fs.Sub(migrations, "migrations/"+folder)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
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
	if current == known {
		return nil
	}
	_, err = provider.Up(ctx)
	return err
}
