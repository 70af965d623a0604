package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// Lost implements [store.Keeper]. The server has the truth, so that nothing is ever
// missing; its administrator restores backups.
func (s *Store) Lost(context.Context) (bool, error) { return false, nil }

// Footprint implements [store.Keeper].
func (s *Store) Footprint(ctx context.Context) (f store.Footprint, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_catalog.pg_class c
			WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'm')`, s.schema).Scan(&f.Bytes)
	})
	return f, err
}

// Check implements [store.Keeper]: it reads every row of every table as a whole, and looks
// each up in the index of its key.
func (s *Store) Check(ctx context.Context) error {
	return s.alone(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tables, err := s.tables(ctx, conn)
		if err != nil {
			return err
		}
		for _, table := range tables {
			if err := checkTable(ctx, conn, table); err != nil {
				return s.damage(table.name, err)
			}
		}
		return nil
	})
}

// table is one of a project, with the columns of its key; it may have none.
type table struct {
	name string
	key  []string
}

func (s *Store) tables(ctx context.Context, conn *pgx.Conn) ([]table, error) {
	rows, err := conn.Query(ctx, `SELECT c.relname, coalesce(array_agg(a.attname ORDER BY a.attnum) FILTER (WHERE a.attname IS NOT NULL), '{}')::text[]
		FROM pg_catalog.pg_class c
			LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
			LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
		WHERE c.relnamespace = $1::text::regnamespace AND c.relkind = 'r' GROUP BY c.relname ORDER BY c.relname`, s.schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t table, err error) {
		err = row.Scan(&t.name, &t.key)
		return t, err
	})
}

// errDisagree says that an index does not have what its table has.
var errDisagree = errors.New("the index of the key does not have the rows of the table")

// checkTable reads a table once in its own order, all columns of it, and once by its key.
func checkTable(ctx context.Context, conn *pgx.Conn, t table) error {
	name := pgx.Identifier{t.name}.Sanitize()
	var rows, bytes, found int64
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it only reads
	var batch pgx.Batch
	batch.Queue("SET LOCAL enable_indexscan = off")
	batch.Queue("SET LOCAL enable_indexonlyscan = off")
	batch.Queue("SELECT count(*), coalesce(sum(length(t::text)), 0) FROM " + name + " t").QueryRow(func(row pgx.Row) error {
		return row.Scan(&rows, &bytes)
	})
	if len(t.key) == 0 {
		return tx.SendBatch(ctx, &batch).Close()
	}
	batch.Queue("SET LOCAL enable_indexscan = on")
	batch.Queue("SET LOCAL enable_indexonlyscan = on")
	batch.Queue("SET LOCAL enable_seqscan = off")
	batch.Queue("SET LOCAL enable_bitmapscan = off")
	columns := make([]string, len(t.key))
	for n, column := range t.key {
		columns[n] = pgx.Identifier{column}.Sanitize()
	}
	by := strings.Join(columns, ", ")
	batch.Queue("SELECT count(*) FROM (SELECT " + by + " FROM " + name + " ORDER BY " + by + ") k").QueryRow(func(row pgx.Row) error {
		return row.Scan(&found)
	})
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if rows != found {
		return fmt.Errorf("%w: %d of %d", errDisagree, found, rows)
	}
	return nil
}

// damage is a *store.CorruptError where an error says that data is damaged.
func (s *Store) damage(table string, err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if errors.Is(err, errDisagree) || ok && (pg.Code == "XX001" || pg.Code == "XX002" || pg.Code == "58030" || pg.Code == "58P01") {
		return &store.CorruptError{Path: s.server.name + " " + s.schema + "." + table, Err: err}
	}
	return err
}

// ledgerTables are those that are not of the registry.
var ledgerTables = []string{"budgets"}

// Vacuum implements [store.Shrinker]. Alone rewrites the tables, for which each is
// locked meanwhile.
func (s *Store) Vacuum(ctx context.Context, alone bool) (done []store.Vacuumed, err error) {
	registry, ledger := store.Vacuumed{Name: "registry"}, store.Vacuumed{Name: "ledger"}
	err = s.alone(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tables, err := s.tables(ctx, conn)
		if err != nil {
			return err
		}
		for _, t := range tables {
			part := &registry
			if slices.Contains(ledgerTables, t.name) {
				part = &ledger
			}
			if err := vacuumTable(ctx, conn, t.name, alone, part); err != nil {
				return fmt.Errorf("vacuum %s: %w", t.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []store.Vacuumed{registry, ledger}, nil
}

func vacuumTable(ctx context.Context, conn *pgx.Conn, name string, alone bool, part *store.Vacuumed) error {
	quoted := pgx.Identifier{name}.Sanitize()
	size := "SELECT pg_total_relation_size($1::text::regclass)"
	var before, after int64
	if err := conn.QueryRow(ctx, size, quoted).Scan(&before); err != nil {
		return err
	}
	command := "VACUUM (ANALYZE) "
	if alone {
		command = "VACUUM (FULL, ANALYZE) "
	}
	if _, err := conn.Exec(ctx, command+quoted); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, size, quoted).Scan(&after); err != nil {
		return err
	}
	part.Before += before
	part.After += after
	return nil
}

// alone runs f with a connection of its own, whose statements may take as long as ctx lasts.
func (s *Store) alone(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	config := s.server.config.ConnConfig.Copy()
	config.RuntimeParams["search_path"], config.RuntimeParams["statement_timeout"] = s.schema, "0"
	s.server.sessions.Prepare(&config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is held back
		err = f(ctx, conn)
	}
	return s.explained(ctx, err)
}

// mender is the [store.Mender] of a store.
type mender struct{ sqlstore.Mender }

// Mend implements [store.Store].
func (s *Store) Mend() store.Mender { return mender{sqlstore.Mender{Store: s.Store}} }

// TrimLogs implements [store.Mender]. The server trims its own.
func (mender) TrimLogs(context.Context) (int64, error) { return 0, nil }

// DropAside implements [store.Mender]. Nothing is ever set aside.
func (mender) DropAside(context.Context, int) ([]string, error) { return nil, nil }
