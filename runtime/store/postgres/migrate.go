package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// migrations has the files of a project's schema, and in a folder those of the fleet's,
// numbered from 0001 without a gap.
//
//go:embed migrations/*.sql migrations/fleet/*.sql
var migrations embed.FS

// tables are what a schema must have.
type tables struct {
	schema  string
	folder  string // of migrations
	project string // name; empty: the tables of the fleet
}

var fleet = tables{schema: fleetSchema, folder: "migrations/fleet"}

func project(name, schema string) tables {
	return tables{schema: schema, folder: "migrations", project: name}
}

// known is the newest version that this binary has migrations to.
func (t tables) known() (int64, error) {
	files, err := fs.Glob(migrations, t.folder+"/*.sql")
	return int64(len(files)), err
}

// upToDate brings a schema to the version of this binary. One that has it costs one query.
func (s *Server) upToDate(ctx context.Context, pool *pgxpool.Pool, t tables) error {
	known, err := t.known()
	if err != nil {
		return err
	}
	current, err := s.versionOf(ctx, pool)
	switch {
	case err != nil:
		return err
	case current > known:
		return fmt.Errorf("%s: schema %s has version %d, this binary knows %d: %w", s.name, t.schema, current, known, store.ErrTooNew)
	case current == known:
		return nil
	}
	return s.migrate(ctx, t)
}

// versionOf returns the version of the schema that a pool's connections see, 0 where it
// is not there.
func (s *Server) versionOf(ctx context.Context, pool *pgxpool.Pool) (version int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	err = pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42P01" { // undefined_table
		return 0, nil
	}
	return version, err
}

// migrate makes and migrates a schema. Of several processes one does it at a time; what
// it has done is found by those behind it.
func (s *Server) migrate(ctx context.Context, t tables) error {
	config := s.config.ConnConfig.Copy()
	config.RuntimeParams["search_path"] = t.schema
	config.RuntimeParams["statement_timeout"] = "0"     // a large table takes its time; ctx bounds it
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no statement comes twice
	db := stdlib.OpenDB(*config)
	defer db.Close() //nolint:errcheck // nothing is held back
	turn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer turn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // which ends the turn
	// One lock of the database for all schemas: two that are made at once can meet in the
	// catalogue.
	if _, err := turn.Exec(ctx, "SELECT pg_advisory_lock(hashtext('rye migrate'))"); err != nil {
		return err
	}
	if err := s.makeSchema(ctx, turn, t); err != nil {
		return err
	}
	files, err := fs.Sub(migrations, t.folder)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, topLevel{files}, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// makeSchema makes a schema, and notes whose it is.
func (s *Server) makeSchema(ctx context.Context, conn *pgx.Conn, t tables) error {
	if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{t.schema}.Sanitize()); err != nil {
		return err
	}
	if t.project == "" {
		return nil
	}
	_, err := conn.Exec(ctx, "INSERT INTO "+fleetSchema+".projects (name, schema_name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
		t.project, t.schema, s.opts.Now().UnixMilli())
	return err
}

// topLevel hides the folders of a file system.
type topLevel struct{ fs.FS }

// Glob implements [fs.GlobFS].
func (f topLevel) Glob(pattern string) ([]string, error) {
	if strings.Contains(pattern, "/") {
		return nil, nil
	}
	return fs.Glob(f.FS, pattern)
}
