package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// durability is a value of PRAGMA synchronous.
type durability string

const (
	// durable: the commit is on disk when it returns.
	durable durability = "FULL"
	// relaxed: the commit survives the end of every process, but the last ones
	// may be lost with the power. Ten times cheaper.
	relaxed durability = "NORMAL"
)

// maxReaders bounds the connections a process reads with.
const maxReaders = 4

// database is one SQLite file with its queue of writers, the one connection
// this process writes with, and those it reads with.
type database struct {
	path   string
	queue  *queue
	writer *sql.DB
	reader *sql.DB
}

// openDatabase opens dir/file, creating and migrating it by the migrations of
// the folder that is named like the queue.
func openDatabase(ctx context.Context, dir, file, name string) (_ *database, err error) {
	d := &database{path: filepath.Join(dir, file)}
	// SQLite would create the file by the umask; its -wal and -shm files get the
	// same mode.
	f, err := openPrivate(d.path)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if d.queue, err = openQueue(filepath.Join(dir, name+".lock")); err != nil {
		return nil, err
	}
	if d.writer, err = openPool(d.path, 1); err != nil {
		return nil, errors.Join(err, d.queue.close())
	}
	if d.reader, err = openPool(d.path, maxReaders, "query_only(1)"); err != nil {
		return nil, errors.Join(err, d.writer.Close(), d.queue.close())
	}
	if err := d.migrate(ctx, name); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.path, err), d.close())
	}
	return d, nil
}

func (d *database) migrate(ctx context.Context, folder string) error {
	release, err := d.queue.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return retryBusy(ctx, func() error { return migrate(ctx, d.writer, folder) })
}

// openPool prepares connections to path; none is made yet.
func openPool(path string, most int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"_txlock": {"immediate"}}
	pragmas = append(pragmas, "foreign_keys(1)", "busy_timeout("+strconv.Itoa(busyTimeout)+")")
	for _, p := range pragmas {
		query.Add("_pragma", p)
	}
	db, err := sql.Open("sqlite", fileURI(path)+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// fileURI escapes what SQLite would take for the end of the path ("?", "#") or
// for an escape ("%"), see https://www.sqlite.org/uri.html.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// write runs f in an immediate transaction, which f's error takes back. Waiting
// for the turn ends with ctx; a transaction that has begun does not, so that
// its outcome is always known. They are short.
func (d *database) write(ctx context.Context, level durability, f func(context.Context, *sql.Tx) error) error {
	release, err := d.queue.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	defer conn.Close() //nolint:errcheck // returns the connection to its pool
	inside := context.WithoutCancel(ctx)
	// It cannot be set inside a transaction, and setting it costs nothing
	// beside the transaction.
	if _, err := conn.ExecContext(inside, "PRAGMA synchronous = "+string(level)); err != nil {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	var tx *sql.Tx
	err = retryBusy(ctx, func() (err error) {
		tx, err = conn.BeginTx(inside, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: begin: %w", d.path, err)
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if err := f(inside, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: commit: %w", d.path, err)
	}
	return nil
}

// read runs f, which reads with d.reader, again while the file is locked.
func (d *database) read(ctx context.Context, f func(*sql.DB) error) error {
	return retryBusy(ctx, func() error { return f(d.reader) })
}

// close waits for the write in progress and closes everything.
func (d *database) close() error {
	return errors.Join(d.queue.close(), d.reader.Close(), d.writer.Close())
}
