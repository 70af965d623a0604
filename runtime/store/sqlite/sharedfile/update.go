package sharedfile

import (
	"context"
	"database/sql"
	"errors"
)

// Update is one statement that changes at most one row.
type Update struct {
	Query string
	Args  []any
	// Learn is told how the file was seen before the row was changed, and how it is
	// seen with the change, when nobody else has committed meanwhile: what was read in
	// the first state, and is not about the row, holds in the second. It is called with
	// the view.
	Learn func(before, now Seen)
}

// Update runs one statement as a transaction of its own, as [File.Write] does: what a
// transaction of several takes beside them costs as much as the statement. It reports
// whether a row was changed.
func (f *File) Update(ctx context.Context, level Durability, check func() error, u Update) (changed bool, err error) {
	err = f.inTurn(ctx, check, func() (err error) {
		changed, err = f.update(ctx, level, u)
		return err
	})
	return changed && err == nil, err
}

func (f *File) update(ctx context.Context, level Durability, u Update) (changed bool, err error) {
	inside := context.WithoutCancel(ctx)
	var result sql.Result
	number, err := f.commit(func() error {
		return f.busy.retry(ctx, func() error {
			conn, err := f.writeConn(inside, level)
			if err != nil {
				return err
			}
			result, err = conn.ExecContext(inside, u.Query, u.Args...)
			return errors.Join(err, conn.Close()) // others may read with it: between the attempts, and before the view learns
		})
	})
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	if err == nil && rows == 1 {
		f.now.view.learn(number, u.Learn)
	}
	return rows == 1, err
}
