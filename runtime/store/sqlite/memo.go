package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Bounds of what a memo keeps. A row has the whole outcome of a thread, which can be
// megabytes.
const (
	maxAnswers     = 64
	maxAnswerBytes = 8 << 20 // of outcomes
)

// memo answers questions about one thread. It asks the file with statements that
// are prepared once, and keeps the answers until somebody commits.
type memo struct {
	reader *sql.DB
	tally  tally
	poll   time.Duration // how long the tally is trusted alone: not everybody counts

	mu         sync.Mutex
	conn       *sql.Conn // of reader; nil until it is needed, and after an error
	statements map[string]*sql.Stmt
	fresh      freshness
	answers    map[memoKey]any
	kept       int // bytes of the outcomes in them
}

// freshness is what answers are as new as.
type freshness struct {
	version int64     // PRAGMA data_version when it was asked for last
	asked   time.Time // when that was
	count   uint64    // of commits just before the first of the answers was read
	counted bool
}

// vantage is what one connection sees. While it stays the same, so do the rows.
type vantage struct {
	memo    *memo // of one opening of a file
	conn    *sql.Conn
	version int64
}

// memoKey is a query whose one parameter is the id of a thread.
type memoKey struct {
	query string
	id    thread.ID
}

func newMemo(reader *sql.DB, tally tally, poll time.Duration) *memo {
	return &memo{reader: reader, tally: tally, poll: poll, answers: map[memoKey]any{}}
}

// recall reads the one row that query finds for a thread; the error of scan is
// not kept. What the answer points to is shared by all who get it, and must stay
// as it is.
func recall[T any](ctx context.Context, d *database, query string, id thread.ID, scan func(row) (T, error)) (T, error) {
	return recallBy(ctx, d, memoKey{query, id}, func(ctx context.Context, st *sql.Stmt) (T, error) {
		return scan(st.QueryRowContext(ctx, id))
	})
}

// recallAll is recall for a query that finds any number of rows.
func recallAll[T any](ctx context.Context, d *database, query string, id thread.ID, scan func(row) (T, error)) ([]T, error) {
	return recallBy(ctx, d, memoKey{query, id}, func(ctx context.Context, st *sql.Stmt) ([]T, error) {
		rows, err := st.QueryContext(ctx, id)
		return scanEach(rows, err, scan)
	})
}

func recallBy[T any](
	ctx context.Context, d *database, q memoKey, read func(context.Context, *sql.Stmt) (T, error),
) (answer T, err error) {
	err = d.readFrom(ctx, func(c connections) (err error) {
		answer, err = lookUp(ctx, c.memo, q, read)
		return err
	})
	return answer, err
}

func lookUp[T any](
	ctx context.Context, m *memo, q memoKey, read func(context.Context, *sql.Stmt) (T, error),
) (answer T, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	defer func() {
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			err = errors.Join(err, m.drop())
		}
	}()
	// It is over in microseconds; a context that can end would cost a goroutine.
	ctx = context.WithoutCancel(ctx)
	if err := m.freshen(ctx); err != nil {
		return answer, err
	}
	if known, ok := m.answers[q].(T); ok {
		return known, nil
	}
	st, err := m.statement(ctx, q.query)
	if err != nil {
		return answer, err
	}
	if answer, err = read(ctx, st); err != nil {
		return answer, err
	}
	m.keep(q, answer)
	return answer, nil
}

func (m *memo) keep(q memoKey, answer any) {
	size := rowBytes(answer)
	if len(m.answers) >= maxAnswers || m.kept+size > maxAnswerBytes {
		m.forget()
	}
	if size <= maxAnswerBytes {
		m.answers[q] = answer
		m.kept += size
	}
}

func (m *memo) forget() {
	clear(m.answers)
	m.kept = 0
}

// rowBytes is how long the texts of an answer are that have no bound of their own.
func rowBytes(answer any) int {
	row, _ := answer.(storedRecord)
	return len(row.result) + len(row.metadata)
}

// freshen forgets the answers when somebody has committed since they were read.
func (m *memo) freshen(ctx context.Context) error {
	trusted := m.fresh.counted && time.Since(m.fresh.asked) < m.poll
	if trusted && m.tally.still(m.fresh.count) {
		return nil
	}
	count, counted := m.tally.quiet()
	if !trusted || !counted {
		return m.ask(ctx, count, counted)
	}
	m.forget()
	m.fresh.count = count
	return nil
}

// ask is freshen by SQLite's number, after the tally's was read. It counts what
// other connections commit, and this one only reads.
func (m *memo) ask(ctx context.Context, count uint64, counted bool) error {
	asked := time.Now()
	st, err := m.statement(ctx, "PRAGMA data_version") //nolint:sqlclosecheck // drop closes it
	if err != nil {
		return err
	}
	var version int64
	if err := st.QueryRowContext(ctx).Scan(&version); err != nil {
		return err
	}
	if version != m.fresh.version {
		m.forget()
	}
	m.fresh = freshness{version: version, asked: asked, count: count, counted: counted && m.tally.inPlace()}
	return nil
}

// look asks SQLite, whatever the tally says.
func (m *memo) look(ctx context.Context) (vantage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count, counted := m.tally.quiet()
	if err := m.ask(context.WithoutCancel(ctx), count, counted); err != nil {
		return vantage{}, errors.Join(err, m.drop())
	}
	return vantage{memo: m, conn: m.conn, version: m.fresh.version}, nil
}

// statement is a query that is prepared when it is first met.
func (m *memo) statement(ctx context.Context, query string) (_ *sql.Stmt, err error) {
	if m.conn == nil {
		if m.conn, err = m.reader.Conn(ctx); err != nil {
			return nil, err
		}
		m.statements = map[string]*sql.Stmt{}
	}
	if m.statements[query] == nil {
		st, err := m.conn.PrepareContext(ctx, query) //nolint:sqlclosecheck // drop closes it
		if err != nil {
			return nil, err
		}
		m.statements[query] = st
	}
	return m.statements[query], nil
}

// drop gives the connection back; the next question takes another. The number
// is of the connection, and so are the answers.
func (m *memo) drop() error {
	if m.conn == nil {
		return nil
	}
	var errs []error
	for _, st := range m.statements {
		errs = append(errs, st.Close())
	}
	errs = append(errs, m.conn.Close())
	m.conn, m.statements = nil, nil
	m.fresh = freshness{}
	m.forget()
	return errors.Join(errs...)
}

func (m *memo) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drop()
}
