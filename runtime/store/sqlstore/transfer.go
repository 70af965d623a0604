package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// The tables that are moved, in the order in which they are written: triggers of the tables
// of messages and threads change rows of those before and behind them, so that threads come
// behind the former, and days and gone_costs last.
var (
	registryTables = []string{
		"news", "messages", "questions", "sets", "set_entries", "deletions", "shown_plans", "sweeps", "threads", "gone_costs", "days",
	}
	ledgerTables = []string{"budgets"}
)

// ordered are the tables whose rows are told apart by when they came.
var ordered = []string{"threads", "sets"}

// numbered are the tables whose rows are given numbers.
var numbered = []string{"news", "messages", "deletions"}

// sum adds up the hashes of rows, so that their order makes no difference.
type sum [4]uint64

func (s *sum) add(row [sha256.Size]byte) {
	var carry uint64
	for i := range s {
		s[i], carry = bits.Add64(s[i], binary.LittleEndian.Uint64(row[8*i:]), carry)
	}
}

func (s *sum) String() string {
	var b []byte
	for _, word := range s {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return hex.EncodeToString(b)
}

// anyRow is one of any table: values by the names of their columns, sorted.
type anyRow struct {
	columns []string
	values  []any
}

// hash is that of the values, the same for every engine.
func (r anyRow) hash() [sha256.Size]byte {
	var b []byte
	for i, column := range r.columns {
		b = append(append(b, column...), 0)
		switch v := r.values[i].(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = strconv.AppendInt(append(b, 'i'), v, 10)
		case float64:
			b = strconv.AppendFloat(append(b, 'f'), v, 'g', -1, 64)
		case string:
			b = append(strconv.AppendInt(append(b, 's'), int64(len(v)), 10), ':')
			b = append(b, v...)
		}
		b = append(b, 0)
	}
	return sha256.Sum256(b)
}

func (r anyRow) number(column string) int64 {
	n, _ := r.values[slices.Index(r.columns, column)].(int64)
	return n
}

// queryer reads.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachOf visits the rows of a table.
func eachOf(ctx context.Context, db queryer, table string, visit func(anyRow) error) (err error) {
	query := "SELECT * FROM " + table
	if slices.Contains(ordered, table) {
		query += " ORDER BY " + placeColumn
	}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		r, err := scanned(rows, columns)
		if err == nil {
			err = visit(r)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanned is the row at which a query stands. The place of a row, which engines give, is no
// part of it.
func scanned(rows *sql.Rows, columns []string) (anyRow, error) {
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	if err := rows.Scan(to...); err != nil {
		return anyRow{}, err
	}
	byName := make(map[string]any, len(columns))
	names := make([]string, 0, len(columns))
	for i, name := range columns {
		if name == placeColumn {
			continue
		}
		names = append(names, name)
		switch v := values[i].(type) {
		case nil, int64, float64, string:
			byName[name] = v
		case []byte:
			byName[name] = string(v)
		case bool:
			byName[name] = int64(map[bool]int{true: 1}[v])
		default:
			return anyRow{}, fmt.Errorf("column %s has a value of type %T", name, v)
		}
	}
	slices.Sort(names)
	if scope, is := byName["scope"].(string); is {
		byName["scope"] = PostgreSQL.scope(scope) // the same for every engine
	}
	r := anyRow{columns: names}
	for _, name := range names {
		r.values = append(r.values, byName[name])
	}
	return r, nil
}

// Content implements [store.Transfer].
func (s *Store) Content(ctx context.Context) (store.Content, error) {
	c := store.Content{Hashes: map[string]string{}}
	err := s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		c.Threads, c.Unended, c.Spend = 0, 0, 0
		return readAll(ctx, &c, db, registryTables, func(table string, r anyRow) {
			if table != "threads" {
				return
			}
			c.Threads++
			c.Spend += r.number("spend")
			if status, _ := r.values[slices.Index(r.columns, "status")].(string); status == "created" || status == "running" {
				c.Unended++
			}
		})
	})
	if err != nil {
		return c, fmt.Errorf("read the registry: %w", err)
	}
	err = s.ledger.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		c.Budgets, c.Settled = 0, 0
		return readAll(ctx, &c, db, ledgerTables, func(_ string, r anyRow) {
			c.Budgets++
			c.Settled += r.number("own_spend")
		})
	})
	if err != nil {
		return c, fmt.Errorf("read the ledger: %w", err)
	}
	return c, nil
}

func readAll(ctx context.Context, c *store.Content, db queryer, tables []string, count func(table string, r anyRow)) error {
	for _, table := range tables {
		var hashes sum
		err := eachOf(ctx, db, table, func(r anyRow) error {
			hashes.add(r.hash())
			c.Rows++
			count(table, r)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
		c.Hashes[table] = hashes.String()
	}
	return nil
}

// Fill implements [store.Transfer].
func (s *Store) Fill(ctx context.Context, other store.Transfer) error {
	of, is := other.(interface{ itself() *Store })
	if !is {
		return fmt.Errorf("%w: %T", store.ErrOtherVersion, other)
	}
	from := of.itself()
	for _, part := range []struct {
		name     string
		to, from Database
		tables   []string
	}{{"ledger", s.ledger, from.ledger, ledgerTables}, {"registry", s.registry, from.registry, registryTables}} {
		f := filling{to: part.to, from: part.from, tables: part.tables, dialect: s.dialect}
		if err := f.run(ctx); err != nil {
			return fmt.Errorf("fill the %s: %w", part.name, err)
		}
	}
	return nil
}

// itself is the store behind that of an engine.
func (s *Store) itself() *Store { return s }

// columnsOf are the columns of a table, sorted.
func columnsOf(ctx context.Context, tx *sql.Tx, table string) (names []string, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if names, err = rows.Columns(); err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == placeColumn })
	slices.Sort(names)
	return names, rows.Err()
}

// placeColumn has the place of a row where SQLite has it without one.
const placeColumn = "rowid"

// filling fills one database from another.
type filling struct {
	to, from Database
	tables   []string
	dialect  Dialect
}

func (f filling) run(ctx context.Context) error {
	var has, wanted store.Content
	for _, look := range []struct {
		at Database
		c  *store.Content
	}{{f.to, &has}, {f.from, &wanted}} {
		err := look.at.Read(ctx, func(ctx context.Context, db *sql.DB) error {
			*look.c = store.Content{Hashes: map[string]string{}}
			return readAll(ctx, look.c, db, f.tables, func(string, anyRow) {})
		})
		if err != nil {
			return err
		}
	}
	switch {
	case has.Same(wanted):
		return nil
	case has.Rows > 0:
		return store.ErrOccupied
	}
	return f.to.WriteAsIs(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		if err := f.dialect.deferReferences(ctx, tx); err != nil {
			return err
		}
		for _, table := range f.tables {
			if table == "days" {
				if err := f.dialect.fireTriggers(ctx, tx); err != nil {
					return err
				}
			}
			if err := f.table(ctx, tx, table); err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
		}
		return f.to.Restored(ctx, tx)
	})
}

// table writes the rows of one table, in the place of what triggers have put there.
func (f filling) table(ctx context.Context, tx *sql.Tx, table string) (err error) {
	if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
		return err
	}
	columns, err := columnsOf(ctx, tx, table)
	if err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx,
		"INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	err = f.from.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		return eachOf(ctx, db, table, func(r anyRow) error {
			if !slices.Equal(r.columns, columns) {
				return fmt.Errorf("%w: columns %q here, %q there", store.ErrOtherVersion, columns, r.columns)
			}
			if i := slices.Index(columns, "scope"); i >= 0 {
				r.values[i] = f.dialect.kept(r.values[i])
			}
			_, err := insert.ExecContext(ctx, r.values...)
			return err
		})
	})
	if err == nil && slices.Contains(numbered, table) {
		err = f.dialect.numberFrom(ctx, tx, table)
	}
	return err
}

// numberFrom lets the numbers that rows of a table are given go on behind those that are
// there.
func (d Dialect) numberFrom(ctx context.Context, tx *sql.Tx, table string) error {
	if d != PostgreSQL { // SQLite does so by itself
		return nil
	}
	var next any
	return tx.QueryRowContext(ctx, "SELECT setval(pg_get_serial_sequence(CAST(? AS TEXT), 'seq'), coalesce(max(seq), 0) + 1, false) FROM "+table, table).Scan(&next)
}

// fireTriggers lets triggers do now what they would do at the end of the transaction.
func (d Dialect) fireTriggers(ctx context.Context, tx *sql.Tx) error {
	if d != PostgreSQL { // they have
		return nil
	}
	_, err := tx.ExecContext(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
	return err
}

// Alone implements [store.Transfer].
func (s *Store) Alone(ctx context.Context, f func(context.Context, store.Content) error) error {
	var called bool
	var of error
	err := s.registry.WriteAsIs(ctx, Durable, func(ctx context.Context, _ *sql.Tx) error {
		if called { // it is not done twice
			return of
		}
		has, err := s.Content(ctx)
		if err != nil {
			return err
		}
		called, of = true, f(ctx, has)
		return of
	})
	if called {
		return of
	}
	return err
}

// kept is a scope as an engine keeps it.
func (d Dialect) kept(scope any) any {
	if text, is := scope.(string); is && d == SQLite {
		return strings.ReplaceAll(text, "\x1f", "\x00")
	}
	return scope
}
