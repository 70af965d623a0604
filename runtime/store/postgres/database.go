package postgres

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// database is the registry or the ledger of a project.
type database struct {
	store     *Store
	lock      string                  // the row of locks whose holder is the one writer
	behind    func(minor bool) string // what is sent with each COMMIT
	committed func(minor bool)        // is called after each commit that may have changed something
}

var _ sqlstore.Database = (*database)(nil)

// Read implements [sqlstore.Database].
func (d *database) Read(ctx context.Context, f func(context.Context, *sql.DB) error) error {
	return d.store.again(ctx, func(ctx context.Context) error { return f(ctx, d.store.db) })
}

// Recall implements [sqlstore.Database]. Nothing is remembered: others commit on other
// machines.
func (d *database) Recall(
	ctx context.Context, _ sqlstore.Question, read func(context.Context, *sql.Conn) (any, error),
) (answer any, err error) {
	err = d.store.again(ctx, func(ctx context.Context) (err error) {
		conn, err := d.store.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // it goes back to the pool
		answer, err = read(ctx, conn)
		return err
	})
	return answer, err
}

// Write implements [sqlstore.Database].
func (d *database) Write(ctx context.Context, level sqlstore.Durability, f func(context.Context, *sql.Tx) error) error {
	return d.write(ctx, level, nil, f)
}

// WriteFrom implements [sqlstore.Database].
func (d *database) WriteFrom(ctx context.Context, level sqlstore.Durability, first sqlstore.Statement, f func(context.Context, *sql.Tx) error) error {
	return d.write(ctx, level, &first, f)
}

func (d *database) write(ctx context.Context, level sqlstore.Durability, first *sqlstore.Statement, f func(context.Context, *sql.Tx) error) error {
	minor := sqlstore.IsMinor(ctx)
	err := d.store.again(ctx, func(ctx context.Context) error {
		return d.transaction(ctx, &opening{lock: d.lock, relaxed: level == sqlstore.Relaxed, behind: d.behind(minor), asked: first}, f)
	})
	if err == nil {
		d.committed(minor)
	}
	return err
}

// WriteAsIs implements [sqlstore.Database]. A server loses no rows that it would have to
// be given back.
func (d *database) WriteAsIs(ctx context.Context, level sqlstore.Durability, f func(context.Context, *sql.Tx) error) error {
	return d.Write(ctx, level, f)
}

// Restored implements [sqlstore.Database].
func (d *database) Restored(context.Context, *sql.Tx) error { return nil }

// Update implements [sqlstore.Database]. It takes no lock but that of the row.
func (d *database) Update(ctx context.Context, level sqlstore.Durability, u sqlstore.Update) (changed bool, err error) {
	minor := sqlstore.IsMinor(ctx)
	err = d.store.again(ctx, func(ctx context.Context) error {
		begin := &opening{relaxed: level == sqlstore.Relaxed, behind: d.behind(minor), first: &u}
		return d.transaction(ctx, begin, func(context.Context, *sql.Tx) error {
			if changed = begin.changed; !changed {
				return errUnchanged // so that nobody waits for the disk
			}
			return nil
		})
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	if err == nil && changed {
		d.committed(minor)
	}
	return changed && err == nil, err
}

// errUnchanged takes back a transaction that has changed nothing.
var errUnchanged = errors.New("nothing was changed")

// BreaksRule implements [sqlstore.Database]: class 23 of SQLSTATE, and text that
// PostgreSQL has no place for (22021, a zero byte).
func (d *database) BreaksRule(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "23") || pg.Code == "22021")
}

// transaction runs f in a transaction. It can be waited for until ctx ends; once it has
// begun only its time ends it, so that its outcome is known.
func (d *database) transaction(ctx context.Context, begin *opening, f func(context.Context, *sql.Tx) error) (err error) {
	conn, err := d.store.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	begin.end = d.store.deadline(ctx)
	inside, cancel := context.WithDeadline(context.WithoutCancel(ctx), begin.end)
	defer cancel()
	tx, err := d.begin(ctx, inside, conn, begin)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := f(inside, tx); err != nil {
		return err
	}
	err = tx.Commit()
	if late := inside.Err(); late != nil && errors.Is(err, sql.ErrTxDone) { // its time was over before COMMIT was sent
		err = late
	}
	return d.store.settled(ctx, err)
}

// begin begins a transaction, which ends with inside at the latest. Waiting for its lock
// ends with ctx.
func (d *database) begin(ctx, inside context.Context, sqlConn *sql.Conn, begin *opening) (*sql.Tx, error) {
	begin.wait = ctx
	err := sqlConn.Raw(func(c any) error {
		c.(*conn).next = begin //nolint:forcetypeassert // the connector makes no others
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sqlConn.BeginTx(inside, nil)
}

// errAgain says that nothing was committed, and that another attempt can succeed.
var errAgain = errors.New("nothing was committed")

// settled finds out what became of a transaction whose COMMIT was not answered.
func (s *Store) settled(ctx context.Context, err error) error {
	lost, ok := errors.AsType[*lostCommitError](err)
	if !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.server.opts.Timeout)
	defer cancel()
	now, failed := s.resolve(ctx, lost.ticket)
	switch now {
	case committed:
		return nil
	case aborted:
		return errors.Join(errAgain, err)
	default:
		return &Error{Server: s.server.name, Fact: ErrUnknownOutcome, Err: errors.Join(err, failed)}
	}
}

// again runs f, which may be run again, until it succeeds or fails with what another
// attempt cannot mend, and no longer than a call may take.
func (s *Store) again(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.server.opts.Timeout)
	defer cancel()
	return s.attempts(ctx, bounded, func() error { return f(bounded) })
}

// Again is what the calls of a store do, for users of Pool: it runs f, which may be run again,
// until it succeeds. No attempt begins when the time of a call is over; f bounds each.
func (s *Store) Again(ctx context.Context, f func(context.Context) error) error {
	patience, cancel := context.WithTimeout(ctx, s.server.opts.Timeout)
	defer cancel()
	return s.attempts(ctx, patience, func() error { return f(ctx) })
}

// attempts makes attempts of a call as long as it has patience, and none while the server is
// known to be away.
func (s *Store) attempts(ctx, patience context.Context, attempt func() error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := s.server.away.recently(); err != nil {
		return err
	}
	var (
		wait   backoff
		before error // of the attempt before
	)
	for {
		err := attempt()
		if before != nil && patience.Err() != nil && errors.Is(factOf(err), ErrTimeout) {
			err = before // which says more than that the time is over
		}
		if err == nil || ctx.Err() != nil || !s.mayTryAgain(ctx, err, wait.attempts) || wait.next(patience) != nil {
			err = s.explained(ctx, err)
			if !s.server.opts.Patient {
				s.server.away.note(ctx, err)
			}
			return err
		}
		before = err
	}
}

// mayTryAgain reports whether an error says that nothing was done, or nothing that may not be
// done twice, and that it can go well at another time.
func (s *Store) mayTryAgain(ctx context.Context, err error, attempts int) bool {
	if s.closed.Load() {
		return false
	}
	if errors.Is(err, ErrUnknownOutcome) {
		return sqlstore.IsRepeatable(ctx)
	}
	if errors.Is(err, errAgain) {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "40001", "40P01": // serialization_failure, deadlock_detected
			return true
		case "0A000": // the plan of a statement does not fit a table that was migrated
			return attempts == 0 && strings.Contains(pg.Message, "cached plan")
		case "53300": // too_many_connections
			return true
		}
	}
	fact := factOf(err)
	switch {
	case errors.Is(fact, ErrUnreachable):
		return true
	case errors.Is(fact, ErrReadOnly):
		s.pool.Reset() // of several servers another may be the primary by now
		return attempts == 0 || s.server.opts.Patient
	case errors.Is(fact, ErrFull):
		return s.server.opts.Patient
	}
	return false
}

// explained gives an error of the driver the words of this package. When the caller has
// given up, it says so.
func (s *Store) explained(ctx context.Context, err error) error {
	if err == nil || s.closed.Load() {
		return err
	}
	if ctx.Err() != nil && factOf(err) != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return s.server.explain(err)
}

// deadline is when a call that begins now must have ended.
func (s *Store) deadline(ctx context.Context) time.Time {
	latest := time.Now().Add(s.server.opts.Timeout)
	if end, ok := ctx.Deadline(); ok && end.Before(latest) {
		return end
	}
	return latest
}

func jitter(most time.Duration) time.Duration { return rand.N(max(most, 1)) }
