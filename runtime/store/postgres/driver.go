package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// openDB is the *sql.DB that statements of sqlstore are run with: pgx's, which
// understands them. Its connections are those of the pool.
func openDB(pool *pgxpool.Pool) *sql.DB {
	db := sql.OpenDB(&connector{Connector: stdlib.GetPoolConnector(pool)})
	db.SetMaxIdleConns(0) // the pool keeps them
	return db
}

type connector struct {
	driver.Connector

	texts translation
}

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner.(*stdlib.Conn), texts: &c.texts}, nil //nolint:forcetypeassert // it is stdlib's connector
}

// conn is a connection that understands the statements of sqlstore.
type conn struct {
	*stdlib.Conn

	texts *translation
	next  *opening // of the transaction that BeginTx is asked for
	first *answer  // came with the beginning of the transaction; nil: none did, or it was read
}

// opening is how a transaction of this package begins.
type opening struct {
	lock    string // the row of locks that it takes; empty: none
	relaxed bool
	behind  string              // follows COMMIT
	first   *sqlstore.Update    // goes with the beginning; nil: nothing does
	changed bool                // whether first has changed a row
	asked   *sqlstore.Statement // goes with the beginning; nil: nothing does
	wait    context.Context     //nolint:containedctx // BeginTx has no other for the wait
	end     time.Time           // by which it must have ended
	ticket  ticket              // which it is given
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if first := c.first; first != nil && first.of(query, args) {
		c.first = nil
		return first, nil
	}
	return c.Conn.QueryContext(ctx, c.texts.of(query), args)
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(ctx, c.texts.of(query), args)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.PrepareContext(ctx, c.texts.of(query))
}

// CheckNamedValue implements [driver.NamedValueChecker]: values are what database/sql
// makes of them, as for SQLite, and booleans are 0 and 1.
func (c *conn) CheckNamedValue(v *driver.NamedValue) (err error) {
	if v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value); err != nil {
		return err
	}
	if yes, is := v.Value.(bool); is {
		v.Value = int64(0)
		if yes {
			v.Value = int64(1)
		}
	}
	return nil
}

// BeginTx implements [driver.ConnBeginTx]. Everything that a transaction begins with goes
// to the server at once.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	begin := c.next
	c.next, c.first = nil, nil
	if begin == nil {
		return c.Conn.BeginTx(ctx, opts)
	}
	var batch pgx.Batch
	batch.Queue("BEGIN")
	const relaxed = "SELECT set_config('synchronous_commit', 'off', true), " // see flush
	if begin.lock != "" {
		batch.Queue(relaxed+ticketColumns+" FROM locks WHERE name = $1 FOR NO KEY UPDATE", begin.lock).QueryRow(begin.ticket.scan)
	} else {
		batch.Queue(relaxed + ticketColumns).QueryRow(begin.ticket.scan)
	}
	if begin.first != nil {
		batch.Queue(c.texts.of(begin.first.Query), begin.first.Args...).Exec(func(done pgconn.CommandTag) error {
			begin.changed = done.RowsAffected() == 1
			return nil
		})
	}
	if begin.asked != nil {
		if err := c.ask(&batch, *begin.asked); err != nil {
			return nil, err
		}
	}
	inner := c.Conn.Conn()
	if err := inner.SendBatch(begin.wait, &batch).Close(); err != nil { //nolint:contextcheck // it ends the wait, and ctx the transaction
		// It may have begun, and the lock be taken.
		_, left := tx{conn: inner, end: begin.end}.exec("ROLLBACK") //nolint:contextcheck // ctx may have ended
		if left != nil {
			_ = inner.Close(context.WithoutCancel(ctx)) // the pool makes another
		}
		return nil, err
	}
	return tx{inner, begin.end, begin.ticket, begin.behind, !begin.relaxed}, nil
}

// tx is a transaction whose outcome can be asked for.
type tx struct {
	conn    *pgx.Conn
	end     time.Time
	ticket  ticket
	behind  string
	durable bool
}

// flush makes durable what was committed before it. PostgreSQL holds the locks of a
// transaction until its commit is on the disk: writers that wait for the one lock would
// wait for the disk one after the other. So a transaction commits without waiting for the
// disk. Behind it, without a lock, an empty message is committed durably. The log is
// written in order, so that everything before the message is on the disk then, too, and one
// write serves all that wait at once. A crash in between loses commits that no caller was
// told of yet, and nothing that anybody could build on them was told either.
const flush = "SELECT pg_logical_emit_message(true, 'rye', '')"

// Commit implements [driver.Tx].
func (t tx) Commit() error {
	if t.conn.IsClosed() {
		return driver.ErrBadConn
	}
	flushed := ""
	if t.durable {
		flushed = "; " + flush
	}
	tag, err := t.exec("COMMIT" + t.behind + flushed)
	var pg *pgconn.PgError
	if tag == "COMMIT" && t.behind != "" && errors.As(err, &pg) && pg.Severity == "ERROR" { // the statement that failed stands behind it
		_, err = t.exec("ROLLBACK" + flushed)
	}
	switch {
	case err == nil && tag == "COMMIT":
		return nil
	case err == nil:
		return fmt.Errorf("%s: %w", tag, sql.ErrTxDone) // a statement of it had failed
	case errors.As(err, &pg) && pg.Severity == "ERROR" && tag == "":
		return err
	}
	// Whether COMMIT was sent is not asked of pgx: of a connection that was lost while it
	// waited for the answer to a simple query, its SafeToRetry says that nothing was sent.
	return &lostCommitError{t.ticket, err}
}

// Rollback implements [driver.Tx].
func (t tx) Rollback() error {
	_, err := t.exec("ROLLBACK")
	return err
}

// exec runs statements and returns what the server says of the first; empty where that
// did not succeed.
func (t tx) exec(statements string) (tag string, err error) {
	ctx, cancel := context.WithDeadline(context.Background(), t.end)
	defer cancel()
	results, err := t.conn.PgConn().Exec(ctx, statements).ReadAll()
	if len(results) > 0 && results[0].Err == nil {
		tag = results[0].CommandTag.String()
	}
	return tag, err
}
