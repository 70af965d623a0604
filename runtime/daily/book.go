// Package daily keeps what the roots of all projects of a user may spend in a day
// within one limit.
//
// The book is a database in the user space that all processes share. A root is
// entered with its whole budget before it can spend anything, and counts so on each
// day on which it is open: until its money is settled, and nothing of it is to be tried
// again. Then it counts with what its tree has come to on the day of that. So what is spent on a day is never more than what
// counts on it, whichever process dies when. A day begins at midnight, local time.
package daily

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

//go:embed schema.sql
var schema string

// Book is the file. It is opened for each use, and made by the first root that is
// entered: without a limit there is none.
type Book struct {
	Path string
	Now  func() time.Time
}

// Path is where the book of a user space is.
func Path(user string) string { return filepath.Join(user, ".ai", "spend", "daily.db") }

// Total is how the money of today stands.
type Total struct {
	Spent  thread.Micros // by roots that have ended today
	Held   thread.Micros // what those that are open may still come to
	Renews time.Time     // the next midnight
}

// Entry is a root in the book.
type Entry struct {
	Project  string
	ThreadID thread.ID
}

// ExceededError says that a root does not fit into what is left of today.
type ExceededError struct {
	Limit, Left, Asked thread.Micros
	Renews             time.Time
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("limits.daily_spend of the user is %s for all projects: %s are left today, %s were asked for; it renews at %s",
		e.Limit, e.Left, e.Asked, e.Renews.Format("2006-01-02 15:04 MST"))
}

// today is the day of a point of time, and when the next one begins.
func today(at time.Time) (day string, renews time.Time) {
	at = at.Local()
	return at.Format(time.DateOnly), thread.StartOfDay(at.Year(), at.Month(), at.Day()+1, at.Location())
}

// Enter enters a root with all it may come to, or with more than before, if that
// fits into the limit; else it is an *[ExceededError]. Less than before changes
// nothing.
func (b *Book) Enter(ctx context.Context, e Entry, amount, limit thread.Micros) error {
	return b.write(ctx, true, func(tx *sql.Tx) error {
		others, renews, err := b.others(ctx, tx, e)
		if err != nil {
			return err
		}
		if left := max(0, limit-others); amount > left {
			return &ExceededError{Limit: limit, Left: left, Asked: amount, Renews: renews}
		}
		day, _ := today(b.Now())
		_, err = tx.ExecContext(ctx, `INSERT INTO roots (project, thread_id, amount, open, day) VALUES (?, ?, ?, 1, ?)
			ON CONFLICT DO UPDATE SET amount = max(amount, excluded.amount), open = 1`, e.Project, e.ThreadID, int64(amount), day)
		return err
	})
}

// Update brings an entry to what the ledger says, which is read while nobody else
// writes: of two that report, the later has the last word. An open root is never
// lowered, as somebody may be about to give it what it was entered with. A root that
// was never entered stays out.
func (b *Book) Update(ctx context.Context, project string, read func() (store.Exposure, error)) error {
	return b.write(ctx, false, func(tx *sql.Tx) error {
		x, err := read()
		if err != nil {
			return err
		}
		day, _ := today(b.Now())
		_, err = tx.ExecContext(ctx, `UPDATE roots SET amount = iif(?2, max(amount, ?1), ?1), open = ?2, day = iif(?2 OR NOT open, day, ?3)
			WHERE project = ?4 AND thread_id = ?5`, int64(x.Most), x.Open, day, project, x.Root)
		return err
	})
}

// Drop ends the entry of a root that nobody can find any more. It counts on the day
// on which it began, with all it may have come to.
func (b *Book) Drop(ctx context.Context, e Entry) error {
	return b.write(ctx, false, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE roots SET open = 0 WHERE project = ? AND thread_id = ?", e.Project, e.ThreadID)
		return err
	})
}

// Remove takes a root out that never had a budget.
func (b *Book) Remove(ctx context.Context, e Entry) error {
	return b.write(ctx, false, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM roots WHERE project = ? AND thread_id = ?", e.Project, e.ThreadID)
		return err
	})
}

// Open lists the roots that are open.
func (b *Book) Open(ctx context.Context) (entries []Entry, err error) {
	err = b.write(ctx, false, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT project, thread_id FROM roots WHERE open ORDER BY project, thread_id")
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err below reports what the iteration met
		for rows.Next() {
			var e Entry
			if err := rows.Scan(&e.Project, &e.ThreadID); err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return rows.Err()
	})
	return entries, err
}

// Today sums up what counts today.
func (b *Book) Today(ctx context.Context) (t Total, err error) {
	var day string
	day, t.Renews = today(b.Now())
	err = b.write(ctx, false, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT coalesce(sum(amount) FILTER (WHERE NOT open AND day = ?), 0),
			coalesce(sum(amount) FILTER (WHERE open), 0) FROM roots`, day).Scan(&t.Spent, &t.Held)
	})
	return t, err
}

// others is what all roots but one count today. Entries of days that are over go.
func (b *Book) others(ctx context.Context, tx *sql.Tx, but Entry) (sum thread.Micros, renews time.Time, err error) {
	day, renews := today(b.Now())
	if _, err := tx.ExecContext(ctx, "DELETE FROM roots WHERE NOT open AND day < ?", day); err != nil {
		return 0, renews, err
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(amount), 0) FROM roots
		WHERE (open OR day = ?) AND NOT (project = ? AND thread_id = ?)`, day, but.Project, but.ThreadID).Scan(&sum)
	return sum, renews, err
}

// patience bounds the wait for a process that holds the book.
const patience = 10 * time.Second

// write does work in one transaction that excludes all others. Without a file, and
// unless it is to be made, nothing is done.
func (b *Book) write(ctx context.Context, create bool, work func(*sql.Tx) error) (err error) {
	if !b.made() {
		if !create {
			return nil
		}
		if err := b.create(); err != nil {
			return fmt.Errorf("make the book of daily spend: %w", err)
		}
	}
	at := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(b.Path), RawQuery: url.Values{
		"_txlock": {"immediate"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", patience.Milliseconds())},
	}.Encode()}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("daily spend, %s: %w", b.Path, err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("daily spend, %s: %w", b.Path, err)
	}
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// made reports whether there is a book: most users have no daily limit.
func (b *Book) made() bool {
	_, err := os.Lstat(b.Path)
	return !errors.Is(err, fs.ErrNotExist)
}

// create makes an empty file that is its user's alone.
func (b *Book) create() error {
	if err := os.MkdirAll(filepath.Dir(b.Path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(b.Path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
