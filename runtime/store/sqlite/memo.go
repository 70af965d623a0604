package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxAnswers bounds what a memo keeps: a row has the whole outcome of a thread.
const maxAnswers = 64

// memo answers questions about one thread. It asks the file with statements that
// are prepared once, and keeps the answers until somebody commits, which costs
// one look at a number that every process sharing the file sees move.
type memo struct {
	reader *sql.DB

	mu         sync.Mutex
	conn       *sql.Conn // of reader; nil until it is needed, and after an error
	statements map[string]*sql.Stmt
	version    int64 // PRAGMA data_version when the first of answers was read
	answers    map[memoKey]any
}

// memoKey is a query whose one parameter is the id of a thread.
type memoKey struct {
	query string
	id    thread.ID
}

func newMemo(reader *sql.DB) *memo { return &memo{reader: reader, answers: map[memoKey]any{}} }

// recall reads the one row that query finds for a thread; the error of scan is
// not kept. What the answer points to is shared by all who get it, and must stay
// as it is.
func recall[T any](ctx context.Context, d *database, query string, id thread.ID, scan func(row) (T, error)) (answer T, err error) {
	q := memoKey{query, id}
	err = d.readFrom(ctx, func(c connections) (err error) {
		answer, err = lookUp(ctx, c.memo, q, scan)
		return err
	})
	return answer, err
}

func lookUp[T any](ctx context.Context, m *memo, q memoKey, scan func(row) (T, error)) (answer T, err error) {
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
	found, err := m.row(ctx, q.query, q.id)
	if err != nil {
		return answer, err
	}
	if answer, err = scan(found); err != nil {
		return answer, err
	}
	if len(m.answers) >= maxAnswers {
		clear(m.answers)
	}
	m.answers[q] = answer
	return answer, nil
}

// freshen forgets the answers when somebody has committed since they were read.
// The number counts what other connections commit, and this one only reads.
func (m *memo) freshen(ctx context.Context) error {
	counted, err := m.row(ctx, "PRAGMA data_version")
	if err != nil {
		return err
	}
	var version int64
	if err := counted.Scan(&version); err != nil {
		return err
	}
	if version != m.version {
		clear(m.answers)
		m.version = version
	}
	return nil
}

// row runs a query, which is prepared when it is first met.
func (m *memo) row(ctx context.Context, query string, args ...any) (_ *sql.Row, err error) {
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
	return m.statements[query].QueryRowContext(ctx, args...), nil
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
	m.version = 0
	clear(m.answers)
	return errors.Join(errs...)
}

func (m *memo) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drop()
}
