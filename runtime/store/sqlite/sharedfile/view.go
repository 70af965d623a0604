package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// View reads one opening of a file over one connection, and knows whether anybody has
// committed meanwhile.
type View struct {
	pool    *sql.DB
	lent    bool // the connection is what this process writes with: it is given back after each look
	commits commitCounter
	poll    time.Duration  // how long the counter is trusted alone: not everybody counts
	states  *atomic.Uint64 // of all views of the file
	own     *atomic.Uint64 // of the file: how often this process has begun or ended a commit

	mu    sync.Mutex
	conn  *sql.Conn // of pool; nil until it is needed, and after an error
	under any       // the driver's connection that was asked last
	fresh freshness
	state uint64
}

// freshness says when a view was compared with the file, and how it stood then.
type freshness struct {
	version int64     // PRAGMA data_version when it was asked for last
	asked   time.Time // when that was
	own     uint64    // View.own at that time
	count   uint64    // of commits when state came to be
	counted bool
}

// dataVersion is what one connection sees. While it stays the same, so do the rows.
type dataVersion struct {
	view    *View // of one opening of a file
	under   any   // the driver's connection
	version int64
	own     uint64 // View.own: a number of SQLite's leaves the commits of its connection out
}

func newView(pool *sql.DB, f *File) *View {
	return &View{
		pool: pool, lent: f.one, commits: f.queue.commits, poll: f.poll,
		states: &f.states, own: &f.commits, state: f.states.Add(1),
	}
}

// Seen is the file as a view sees it during one call of Look.
type Seen struct {
	// State stays the same from call to call as long as nobody is known to have
	// committed. An answer that was read in one state holds in every call that has it,
	// of whichever view of the file. It is never 0.
	State uint64
	view  *View
}

// Conn is the connection of the view, for as long as the call of Look lasts. It keeps
// the statements of its queries.
func (s Seen) Conn(ctx context.Context) (*sql.Conn, error) { return s.view.connect(ctx) }

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
		v.giveBack()
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
// what other connections commit, and this one may write too.
func (v *View) ask(ctx context.Context, count uint64, counted bool) error {
	asked, own := time.Now(), v.own.Load()
	conn, err := v.connect(ctx)
	if err != nil {
		return err
	}
	var version int64
	if err := conn.QueryRowContext(ctx, versionQuery).Scan(&version); err != nil {
		return err
	}
	if version != v.fresh.version || own != v.fresh.own {
		v.renew()
	}
	v.fresh = freshness{version: version, asked: asked, own: own, count: count, counted: counted && v.commits.inPlace()}
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
	v.fresh.count, v.fresh.own = number, v.own.Load()
	f(before, Seen{State: v.state, view: v})
}

func (v *View) renew() { v.state = v.states.Add(1) }

// version asks SQLite, whatever the counter says.
func (v *View) version(ctx context.Context) (dataVersion, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.giveBack()
	count, counted := v.commits.quiet()
	if err := v.ask(context.WithoutCancel(ctx), count, counted); err != nil {
		return dataVersion{}, errors.Join(err, v.drop())
	}
	return dataVersion{view: v, under: v.under, version: v.fresh.version, own: v.fresh.own}, nil
}

// connect is the connection to read with. Versions are of one connection of the driver,
// and so are states.
func (v *View) connect(ctx context.Context) (_ *sql.Conn, err error) {
	if v.conn != nil {
		return v.conn, nil
	}
	if v.conn, err = v.pool.Conn(ctx); err != nil {
		return nil, err
	}
	return v.conn, v.conn.Raw(func(under any) error {
		if under != v.under {
			v.under, v.fresh = under, freshness{}
			v.renew()
		}
		return nil
	})
}

// giveBack lets others use a connection that is not the view's own.
func (v *View) giveBack() {
	if v.lent && v.conn != nil {
		_ = v.conn.Close() // it goes back to its pool
		v.conn = nil
	}
}

// drop gives the connection back; the next question takes another. The number
// is of the connection, and so is the state.
func (v *View) drop() error {
	if v.conn == nil {
		return nil
	}
	err := v.conn.Close()
	v.conn, v.under = nil, nil
	v.fresh = freshness{}
	v.renew()
	return err
}

func (v *View) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.drop()
}
