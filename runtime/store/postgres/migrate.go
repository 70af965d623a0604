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
	files   fs.FS  // with the folder; nil: those of this binary
}

var fleet = tables{schema: fleetSchema, folder: "migrations/fleet"}

func project(name, schema string) tables {
	return tables{schema: schema, folder: "migrations", project: name}
}

// migrations are the files that have the folder.
func (t tables) migrations() fs.FS {
	if t.files == nil {
		return migrations
	}
	return t.files
}

// known is the newest version that there are migrations to.
func (t tables) known() (int64, error) {
	files, err := fs.Glob(t.migrations(), t.folder+"/*.sql")
	return int64(len(files)), err
}

// upToDate brings a schema to the version of this binary. One that has it costs one query.
func (s *Server) upToDate(ctx context.Context, pool *pgxpool.Pool, t tables) error {
	current, err := s.versionOf(ctx, pool, "SELECT "+newestVersion("goose_db_version"))
	if err != nil {
		return err
	}
	return s.from(ctx, t, current)
}

// Fits returns an error that wraps [store.ErrTooNew] once a newer binary has changed the
// tables of the project or of the fleet: what this one has open goes on, and its new processes
// refuse them.
func (s *Store) Fits(ctx context.Context) error {
	both, err := s.server.bothVersions(ctx, s.pool)
	if err != nil {
		return s.server.explain(err)
	}
	return errors.Join(s.server.check(fleet, both/aMillion), s.server.check(project("", s.schema), both%aMillion))
}

// check refuses a version that this binary does not know.
func (s *Server) check(t tables, current int64) error {
	t.files = s.opts.Migrations
	known, err := t.known()
	if err == nil && current > known {
		err = s.tooNew(t.schema, current, known)
	}
	return err
}

func (s *Server) tooNew(schema string, current, known int64) error {
	return fmt.Errorf("%s: schema %s has version %d, this binary knows %d: %w", s.name, schema, current, known, store.ErrTooNew)
}

const aMillion = 1_000_000

// bothVersions is one number of the versions of a project and the fleet, which are far below
// a million; 0: one is not there.
func (s *Server) bothVersions(ctx context.Context, pool *pgxpool.Pool) (int64, error) {
	return s.versionOf(ctx, pool, fmt.Sprintf("SELECT %s + %d * %s", newestVersion("goose_db_version"), aMillion, newestVersion(fleetSchema+".goose_db_version")))
}

// bothFrom is from for a project, and for what all projects share.
func (s *Server) bothFrom(ctx context.Context, t tables, both int64) error {
	if err := s.from(ctx, fleet, both/aMillion); err != nil {
		return err
	}
	return s.from(ctx, t, both%aMillion)
}

// from brings a schema from the version that it has to that of this binary.
func (s *Server) from(ctx context.Context, t tables, current int64) error {
	t.files = s.opts.Migrations
	known, err := t.known()
	if err == nil && current < known {
		return s.migrate(ctx, t)
	}
	return errors.Join(err, s.check(t, current))
}

// newestVersion is the version that a table of goose tells.
func newestVersion(table string) string {
	return "(SELECT coalesce(max(version_id), 0) FROM " + table + " WHERE is_applied)"
}

// versionOf asks for a version, which is 0 where the table that tells it is not there.
func (s *Server) versionOf(ctx context.Context, pool *pgxpool.Pool, query string) (version int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var now int64
	var mark string
	// It is asked once, so it is not worth a prepared statement.
	err = pool.QueryRow(ctx, query+", (extract(epoch FROM clock_timestamp()) * 1000)::bigint, "+markSQL, pgx.QueryExecModeExec).Scan(&version, &now, &mark)
	if err == nil {
		s.clock.set(now)
		err = s.unfinished(mark)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "42P01" || pg.Code == "3F000") { // no such table, no such schema
		return 0, nil
	}
	return version, err
}

// migrate makes and migrates a schema. Of several processes one does it at a time; what
// it has done is found by those behind it.
func (s *Server) migrate(ctx context.Context, t tables) error {
	config := s.config.ConnConfig.Copy()
	config.RuntimeParams["search_path"] = t.schema
	config.RuntimeParams["statement_timeout"] = "0" // a large table takes its time; ctx bounds it
	s.sessions.Prepare(&config.Config)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no statement comes twice
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
	var isNew bool
	if err := turn.QueryRow(ctx, "SELECT to_regclass('goose_db_version') IS NULL").Scan(&isNew); err != nil {
		return err
	}
	if isNew {
		return t.create(ctx, turn)
	}
	return t.update(ctx, config)
}

// versionsTable is the table that goose makes.
const versionsTable = `CREATE TABLE goose_db_version (
	id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
	version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now());
INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, true);
`

// create makes the tables of a new schema as all migrations leave them, in one request:
// to apply one statement after the other takes several times as long. All of a file is
// to be done; there is no way back in any, and what goose is told stands in comments.
func (t tables) create(ctx context.Context, conn *pgx.Conn) error {
	known, err := t.known()
	if err != nil {
		return err
	}
	files, err := fs.Glob(t.migrations(), t.folder+"/*.sql") // in the order of their numbers
	if err != nil {
		return err
	}
	var all strings.Builder
	all.WriteString("BEGIN;\n" + versionsTable)
	for _, name := range files {
		text, err := fs.ReadFile(t.migrations(), name)
		if err != nil {
			return err
		}
		all.Write(text)
	}
	fmt.Fprintf(&all, "\nINSERT INTO goose_db_version (version_id, is_applied) SELECT n, true FROM generate_series(1, %d) n;\nCOMMIT", known)
	_, err = conn.PgConn().Exec(ctx, all.String()).ReadAll()
	return err
}

// update applies the migrations that a schema lacks.
func (t tables) update(ctx context.Context, config *pgx.ConnConfig) error {
	db := stdlib.OpenDB(*config)
	defer db.Close() //nolint:errcheck // nothing is held back
	files, err := fs.Sub(t.migrations(), t.folder)
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
	if t.project != "" {
		if err := s.notMoved(ctx, conn, t.schema); err != nil {
			return err
		}
	}
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
