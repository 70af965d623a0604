package sharedfile

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"modernc.org/sqlite"
)

// maxKept bounds the statements that a connection keeps. The program has more, and puts
// further ones together; one that was not used for longest makes room.
const maxKept = 64

// versionQuery asks for SQLite's number of what other connections have committed.
const versionQuery = "PRAGMA data_version"

// connector makes connections that keep their statements.
type connector struct{ name string }

// Connect implements [driver.Connector].
func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.name)
	if err != nil {
		return nil, err
	}
	return &connection{sqliteConn: conn.(sqliteConn), kept: map[string]*keptStatement{}}, nil
}

// Driver implements [driver.Connector].
func (c connector) Driver() driver.Driver { return &sqlite.Driver{} }

// sqliteConn is what a connection of the library can do.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// connection keeps the statement of each query, since preparing one costs SQLite in Go
// more than running it does. Like every [driver.Conn] it is used by one goroutine at a
// time.
type connection struct {
	sqliteConn

	kept  map[string]*keptStatement
	uses  uint64     // of kept statements
	level Durability // that was set last; empty: what SQLite begins with
}

// sqliteStmt is what a statement of the library can do.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type keptStatement struct {
	sqliteStmt

	busy bool   // its rows are being read
	last uint64 // of the uses of its connection
}

// setDurability makes the commits that follow as durable as that.
func (c *connection) setDurability(ctx context.Context, level Durability) error {
	if c.level == level {
		return nil
	}
	_, err := c.sqliteConn.ExecContext(ctx, "PRAGMA synchronous = "+string(level), nil)
	if err == nil {
		c.level = level
	}
	return err
}

// statement is the kept one of a query; nil when the query must be prepared for this
// one use.
func (c *connection) statement(ctx context.Context, query string) *keptStatement {
	c.uses++
	if st := c.kept[query]; st != nil {
		if st.busy {
			return nil
		}
		st.last = c.uses
		return st
	}
	// A PRAGMA may take effect when it is prepared, and then no more.
	if strings.HasPrefix(query, "PRAGMA") && query != versionQuery || !c.makeRoom() {
		return nil
	}
	st, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil // the same shows to the caller that runs it
	}
	c.kept[query] = &keptStatement{sqliteStmt: st.(sqliteStmt), last: c.uses}
	return c.kept[query]
}

// makeRoom reports whether another statement can be kept.
func (c *connection) makeRoom() bool {
	if len(c.kept) < maxKept {
		return true
	}
	oldest, last := "", c.uses
	for query, st := range c.kept {
		if !st.busy && st.last < last {
			oldest, last = query, st.last
		}
	}
	if oldest == "" {
		return false
	}
	_ = c.kept[oldest].Close() // SQLite repeats what its last use has told
	delete(c.kept, oldest)
	return true
}

// ExecContext implements [driver.ExecerContext].
func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if st := c.statement(ctx, query); st != nil {
		return st.ExecContext(ctx, args)
	}
	return c.sqliteConn.ExecContext(ctx, query, args)
}

// QueryContext implements [driver.QueryerContext].
func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	st := c.statement(ctx, query)
	if st == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := st.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	st.busy = true
	return &keptRows{rows, st}, nil
}

// Close implements [driver.Conn].
func (c *connection) Close() error {
	var errs []error
	for _, st := range c.kept {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, c.sqliteConn.Close())...)
}

// keptRows are the rows of a kept statement.
type keptRows struct {
	driver.Rows

	of *keptStatement
}

// Close implements [driver.Rows].
func (r *keptRows) Close() error {
	r.of.busy = false
	return r.Rows.Close()
}
