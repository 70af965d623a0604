package sqlstore

import (
	"context"
	"database/sql"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// recall reads the one row that query finds for a thread; the error of scan is
// not kept. All who get the answer share what it points to, which must stay as it is.
func recall[T any](ctx context.Context, d Database, query string, id thread.ID, scan func(row) (T, error)) (T, error) {
	return answered[T](d.Recall(ctx, Question{query, string(id)}, func(ctx context.Context, conn *sql.Conn) (any, error) {
		return scan(conn.QueryRowContext(ctx, query, id))
	}))
}

// recallAll is recall for a query that finds any number of rows.
func recallAll[T any](ctx context.Context, d Database, query, param string, scan func(row) (T, error)) ([]T, error) {
	return answered[[]T](d.Recall(ctx, Question{query, param}, func(ctx context.Context, conn *sql.Conn) (any, error) {
		rows, err := conn.QueryContext(ctx, query, param)
		return scanEach(rows, err, scan)
	}))
}

// recallBy is recall for an answer to a query without a parameter, however it is read.
func recallBy[T any](ctx context.Context, d Database, query string, read func(context.Context, *sql.Conn) (T, error)) (T, error) {
	return answered[T](d.Recall(ctx, Question{Query: query}, func(ctx context.Context, conn *sql.Conn) (any, error) {
		return read(ctx, conn)
	}))
}

// answered is an answer as what it was read as.
func answered[T any](found any, err error) (answer T, _ error) {
	if err != nil {
		return answer, err
	}
	return found.(T), nil
}

// change runs one guarded statement as a transaction, and reports whether it has changed a
// row. Other than with [update], what it reads of other rows holds.
func change(ctx context.Context, d Database, level Durability, query string, args ...any) (changed bool, err error) {
	err = d.Write(ctx, level, func(ctx context.Context, tx *sql.Tx) (err error) {
		changed, err = changeIn(ctx, tx, query, args...)
		return err
	})
	return changed && err == nil, err
}

// changeIn is change in a transaction that does more.
func changeIn(ctx context.Context, tx *sql.Tx, query string, args ...any) (changed bool, err error) {
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	rows, err := res.RowsAffected()
	return rows > 0, err
}

// update runs a statement that changes the row of a thread, at most, as a transaction of
// its own, and where the answer to q is remembered, has it remembered as change leaves it: a
// thread looks at its own row after each write to it. It reports whether the row was
// changed.
func update[T any](
	ctx context.Context, d Database, level Durability, q Question, change func(T) T, query string, args ...any,
) (changed bool, err error) {
	return d.Update(ctx, level, Update{Query: query, Args: args, Of: q, Change: func(answer any) any { return change(answer.(T)) }})
}
