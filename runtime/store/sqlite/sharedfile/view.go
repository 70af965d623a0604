package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// View reads one opening of a file over a connection that it keeps, with statements
// that are prepared once, and knows whether anybody has committed meanwhile.
type View struct {
	pool    *sql.DB
	commits commitCounter
	poll    time.Duration  // how long the counter is trusted alone: not everybody counts
	states  *atomic.Uint64 // of all views of the file

	mu         sync.Mutex
	conn       *sql.Conn // of pool; nil until it is needed, and after an error
	statements map[string]*sql.Stmt
	fresh      freshness
	state      uint64
}

// freshness says when a view was compared with the file, and how it stood then.
type freshness struct {
	version int64     // PRAGMA data_version when it was asked for last
	asked   time.Time // when that was
	count   uint64    // of commits when state came to be
	counted bool
}

// dataVersion is what one connection sees. While it stays the same, so do the rows.
type dataVersion struct {
	view    *View // of one opening of a file
	conn    *sql.Conn
	version int64
}

func newView(pool *sql.DB, commits commitCounter, poll time.Duration, states *atomic.Uint64) *View {
	return &View{pool: pool, commits: commits, poll: poll, states: states, state: states.Add(1)}
}

// Seen is the file as a view sees it during one call of Look.
type Seen struct {
	// State stays the same from call to call as long as nobody is known to have
	// committed. An answer that was read in one state holds in every call that has it,
	// of whichever view of the file. It is never 0.
	State uint64
	view  *View
}

// Prepare returns the statement of a query, prepared when it is first met.
func (s Seen) Prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	return s.view.statement(ctx, query)
}

// Look calls f after finding out whether anybody has committed; one call at a time.
// An error of f, but for sql.ErrNoRows, ends the connection, and with it the state.
func (v *View) Look(ctx context.Context, f func(context.Context, Seen) error) (err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	defer func() {
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			err = errors.Join(err, v.drop())
		}
	}()
	// It is over in microseconds; a context that can end would cost a goroutine.
	ctx = context.WithoutCancel(ctx)
	if err := v.freshen(ctx); err != nil {
		return err
	}
	return f(ctx, Seen{State: v.state, view: v})
}

// freshen begins another state when somebody has committed since this one began.
func (v *View) freshen(ctx context.Context) error {
	trusted := v.fresh.counted && time.Since(v.fresh.asked) < v.poll
	if trusted && v.commits.still(v.fresh.count) {
		return nil
	}
	count, counted := v.commits.quiet()
	if !trusted || !counted {
		return v.ask(ctx, count, counted)
	}
	v.renew()
	v.fresh.count = count
	return nil
}

// ask is freshen by SQLite's number, after that of the counter was read. It counts
// what other connections commit, and this one only reads.
func (v *View) ask(ctx context.Context, count uint64, counted bool) error {
	asked := time.Now()
	st, err := v.statement(ctx, "PRAGMA data_version") //nolint:sqlclosecheck // drop closes it
	if err != nil {
		return err
	}
	var version int64
	if err := st.QueryRowContext(ctx).Scan(&version); err != nil {
		return err
	}
	if version != v.fresh.version {
		v.renew()
	}
	v.fresh = freshness{version: version, asked: asked, count: count, counted: counted && v.commits.inPlace()}
	return nil
}

// learn tells f of the state that a commit of this process has led to, when it was the
// first since the file was looked at and it is not yet time to ask SQLite. The caller
// has the turn, so that nobody has counted since.
func (v *View) learn(number uint64, f func(before, now Seen)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.fresh.counted || v.fresh.count+1 != number || time.Since(v.fresh.asked) >= v.poll {
		return
	}
	before := Seen{State: v.state, view: v}
	v.renew()
	v.fresh.count = number
	f(before, Seen{State: v.state, view: v})
}

func (v *View) renew() { v.state = v.states.Add(1) }

// version asks SQLite, whatever the counter says.
func (v *View) version(ctx context.Context) (dataVersion, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	count, counted := v.commits.quiet()
	if err := v.ask(context.WithoutCancel(ctx), count, counted); err != nil {
		return dataVersion{}, errors.Join(err, v.drop())
	}
	return dataVersion{view: v, conn: v.conn, version: v.fresh.version}, nil
}

func (v *View) statement(ctx context.Context, query string) (_ *sql.Stmt, err error) {
	if v.conn == nil {
		if v.conn, err = v.pool.Conn(ctx); err != nil {
			return nil, err
		}
		v.statements = map[string]*sql.Stmt{}
	}
	if v.statements[query] == nil {
		st, err := v.conn.PrepareContext(ctx, query) //nolint:sqlclosecheck // drop closes it
		if err != nil {
			return nil, err
		}
		v.statements[query] = st
	}
	return v.statements[query], nil
}

// drop gives the connection back; the next question takes another. The number
// is of the connection, and so is the state.
func (v *View) drop() error {
	if v.conn == nil {
		return nil
	}
	var errs []error
	for _, st := range v.statements {
		errs = append(errs, st.Close())
	}
	errs = append(errs, v.conn.Close())
	v.conn, v.statements = nil, nil
	v.fresh = freshness{}
	v.renew()
	return errors.Join(errs...)
}

func (v *View) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.drop()
}
