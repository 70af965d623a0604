package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Bounds of what is remembered. A row has the whole outcome of a thread, which can be
// megabytes.
const (
	maxAnswers     = 64
	maxAnswerBytes = 8 << 20 // of outcomes
)

// rowCache remembers answers to questions about one thread until somebody commits.
// Only what runs in [sharedfile.View.Look], or learns of an update, uses it, one at a
// time.
type rowCache struct {
	state   uint64 // in which the answers were read, see [sharedfile.Seen]
	answers map[rowKey]any
	kept    int // bytes of the outcomes in them
}

// rowKey is a query with its one parameter, most often the id of a thread.
type rowKey struct{ query, param string }

// recall reads the one row that query finds for a thread; the error of scan is
// not kept. All who get the answer share what it points to, which must stay as it is.
func recall[T any](ctx context.Context, d *database, query string, id thread.ID, scan func(row) (T, error)) (T, error) {
	return recallBy(ctx, d, rowKey{query, string(id)}, func(ctx context.Context, conn *sql.Conn) (T, error) {
		return scan(conn.QueryRowContext(ctx, query, id))
	})
}

// recallAll is recall for a query that finds any number of rows.
func recallAll[T any](ctx context.Context, d *database, query, param string, scan func(row) (T, error)) ([]T, error) {
	return recallBy(ctx, d, rowKey{query, param}, func(ctx context.Context, conn *sql.Conn) ([]T, error) {
		rows, err := conn.QueryContext(ctx, query, param)
		return scanEach(rows, err, scan)
	})
}

func recallBy[T any](
	ctx context.Context, d *database, q rowKey, read func(context.Context, *sql.Conn) (T, error),
) (answer T, err error) {
	err = d.readFrom(ctx, func(r sharedfile.Reader) error {
		return r.View.Look(ctx, func(ctx context.Context, now sharedfile.Seen) (err error) {
			answer, err = lookUp(ctx, &d.rows, now, q, read)
			return err
		})
	})
	return answer, err
}

// update runs a statement that changes the row of a thread, at most, as a transaction of
// its own, and where the answer to q is remembered, remembers it as change leaves it: a
// thread looks at its own row after each write to it. It reports whether the row was
// changed.
func update[T any](
	ctx context.Context, d *database, level sharedfile.Durability, q rowKey, change func(T) T, query string, args ...any,
) (changed bool, err error) {
	return d.update(ctx, level, sharedfile.Update{Query: query, Args: args, Learn: func(before, now sharedfile.Seen) {
		d.rows.turnTo(before.State)
		known, ok := d.rows.answers[q].(T)
		d.rows.turnTo(now.State)
		if ok {
			d.rows.keep(q, change(known))
		}
	}})
}

func lookUp[T any](
	ctx context.Context, c *rowCache, now sharedfile.Seen, q rowKey, read func(context.Context, *sql.Conn) (T, error),
) (answer T, err error) {
	defer func() {
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			c.forget()
		}
	}()
	c.turnTo(now.State)
	if known, ok := c.answers[q].(T); ok {
		return known, nil
	}
	conn, err := now.Conn(ctx)
	if err != nil {
		return answer, err
	}
	if answer, err = read(ctx, conn); err != nil {
		return answer, err
	}
	c.keep(q, answer)
	return answer, nil
}

func (c *rowCache) keep(q rowKey, answer any) {
	size := rowBytes(answer)
	if len(c.answers) >= maxAnswers || c.kept+size > maxAnswerBytes {
		c.forget()
	}
	if size <= maxAnswerBytes {
		c.answers[q] = answer
		c.kept += size
	}
}

func (c *rowCache) forget() {
	clear(c.answers)
	c.kept = 0
}

// rowBytes is how long the texts of an answer are that have no bound of their own.
func rowBytes(answer any) int {
	row, _ := answer.(storedRecord)
	return len(row.result) + len(row.metadata)
}

// turnTo forgets what was read in another state.
func (c *rowCache) turnTo(state uint64) {
	if c.state == state {
		return
	}
	if c.answers == nil {
		c.answers = map[rowKey]any{}
	}
	c.forget()
	c.state = state
}
