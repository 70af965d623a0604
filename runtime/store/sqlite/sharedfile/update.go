package sharedfile

import (
	"context"
	"database/sql"
)

// Update is one statement that changes at most one row and returns it.
type Update struct {
	Query string
	Args  []any
	// Scan reads the row.
	Scan func(*sql.Rows) error
	// Learn is told how the file is seen with the row in it, when that is known: what
	// was read holds there until somebody else commits. It is called with the view.
	Learn func(Seen)
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
	conn, err := f.writeConn(inside, level)
	if err != nil {
		return false, err
	}
	defer conn.Close() //nolint:errcheck // returns the connection to its pool
	number := f.queue.commits.begin()
	err = f.busy.retry(ctx, func() (err error) {
		changed, err = u.run(inside, conn)
		return err
	})
	if err != nil {
		return false, err
	}
	f.queue.commits.end(number)
	if changed {
		f.now.view.learn(number, u.Learn)
	}
	return changed, nil
}

// run reads to the end of the statement, which is when SQLite commits it.
func (u Update) run(ctx context.Context, conn *sql.Conn) (changed bool, err error) {
	rows, err := conn.QueryContext(ctx, u.Query, u.Args...)
	if err != nil {
		return false, err
	}
	defer rows.Close() //nolint:errcheck // Err below reports what the statement met
	for rows.Next() {
		if err := u.Scan(rows); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, rows.Err()
}
