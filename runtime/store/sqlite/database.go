package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
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

// database is one SQLite file with its queue of writers and this process's
// connections to it.
type database struct {
	path  string
	name  string // of its queue, and of its folder of migrations
	queue *queue
	busy  waiting       // for locks of SQLite's own
	mark  string        // which it must carry; empty: none
	ours  func() error  // see Options.Ours
	poll  time.Duration // how long a commit that nobody counted can go unnoticed

	// mu is held for reading by whoever uses the connections, and for writing,
	// with the queue's lock, to exchange them.
	mu sync.RWMutex
	connections

	loss
}

// openDatabase opens dir/file, creating and migrating it where needed. Hooks may
// have nil functions. A file that needs neither is opened without a turn: who only
// reads need not wait for who writes.
func openDatabase(ctx context.Context, dir, file string, opts Options, hooks hooks) (*database, error) {
	d := &database{path: filepath.Join(dir, file), name: names[file], poll: opts.Poll, ours: opts.Ours, loss: loss{hooks: hooks}}
	if opts.Mark != nil {
		d.mark = opts.Mark(d.name)
	}
	var err error
	if d.queue, err = openQueue(lockPath(dir, d.name), opts); err != nil {
		return nil, err
	}
	d.busy = d.queue.waiting
	d.busy.path = d.path
	d.busy.files = append([]string{d.path, d.path + "-shm"}, d.busy.files...)
	if current, ok := connectCurrent(ctx, d); ok {
		d.connections = current
		d.found(current)
		return d, nil
	}
	release, err := d.queue.acquire(ctx)
	if err != nil {
		return nil, errors.Join(err, d.queue.close())
	}
	d.connections, err = connect(ctx, d)
	d.found(d.connections)
	release()
	if err != nil {
		return nil, errors.Join(explain(d.path, err), d.queue.close())
	}
	return d, nil
}

// lockPath is the file whose lock is the queue of a database.
func lockPath(dir, name string) string { return filepath.Join(dir, name+".lock") }

// write runs f in an immediate transaction, which f's error takes back. Waiting
// for the turn ends with ctx; a transaction that has begun does not, so that
// its outcome is always known. They are short.
func (d *database) write(ctx context.Context, level durability, f func(context.Context, *sql.Tx) error) error {
	for {
		err := d.writeOnce(ctx, level, d.complete, f)
		if !errors.Is(err, errIncomplete) {
			d.tell(ctx, err)
			return err
		}
		if err := d.rebuild(ctx); err != nil {
			return err
		}
	}
}

// writeAsIs is write for who brings missing rows back.
func (d *database) writeAsIs(ctx context.Context, level durability, f func(context.Context, *sql.Tx) error) error {
	return d.writeOnce(ctx, level, func() error { return nil }, f)
}

// writeOnce runs f unless check, with the turn in hand, finds a reason not to.
func (d *database) writeOnce(
	ctx context.Context, level durability, check func() error, f func(context.Context, *sql.Tx) error,
) error {
	release, err := d.queue.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := d.follow(ctx); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return explain(d.path, d.transact(ctx, level, f))
}

func (d *database) transact(ctx context.Context, level durability, f func(context.Context, *sql.Tx) error) error {
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // returns the connection to its pool
	inside := context.WithoutCancel(ctx)
	// It cannot be set inside a transaction, and setting it costs nothing
	// beside the transaction.
	if _, err := conn.ExecContext(inside, "PRAGMA synchronous = "+string(level)); err != nil {
		return err
	}
	var tx *sql.Tx
	err = d.busy.retry(ctx, func() (err error) {
		tx, err = conn.BeginTx(inside, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if err := f(inside, tx); err != nil {
		return err
	}
	number := d.queue.tally.begin()
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	d.queue.tally.end(number)
	return nil
}

// read runs f, which reads with the *sql.DB it is given, again while the file is
// locked or when it was replaced meanwhile.
func (d *database) read(ctx context.Context, f func(*sql.DB) error) error {
	return d.readFrom(ctx, func(c connections) error { return f(c.reader) })
}

// readFrom is read with the choice of what is read from.
func (d *database) readFrom(ctx context.Context, f func(connections) error) error {
	for {
		if err := d.followInTurn(ctx); err != nil {
			return err
		}
		if d.complete() != nil {
			if err := d.rebuild(ctx); err != nil {
				return err
			}
		}
		err := explain(d.path, d.readOnce(ctx, f))
		d.tell(ctx, err)
		if err == nil || ctx.Err() != nil || !d.replaced() {
			return err
		}
	}
}

// readAsIs is read for who looks whether rows are missing.
func (d *database) readAsIs(ctx context.Context, f func(*sql.DB) error) error {
	if err := d.followInTurn(ctx); err != nil {
		return err
	}
	return explain(d.path, d.readOnce(ctx, func(c connections) error { return f(c.reader) }))
}

func (d *database) readOnce(ctx context.Context, f func(connections) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.busy.retry(ctx, func() error { return f(d.connections) })
}

// replaced reports whether another file, or none, is in the place of the one
// that is open: somebody has set that aside. What is written to it would be
// seen by nobody.
func (d *database) replaced() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return !sameFile(d.path, d.identity)
}

// followInTurn is follow for a caller who has not the queue's lock.
func (d *database) followInTurn(ctx context.Context) error {
	if !d.replaced() {
		return nil
	}
	if err := d.mayFollow(); err != nil {
		return err
	}
	release, err := d.queue.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return d.follow(ctx)
}

// follow opens the file that has replaced the one that was open, if one has. The
// caller has the queue's lock.
func (d *database) follow(ctx context.Context) error {
	if !d.replaced() {
		return nil
	}
	if err := d.mayFollow(); err != nil {
		return err
	}
	next, err := connect(ctx, d)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrReplaced, explain(d.path, err))
	}
	d.found(next)
	d.mu.Lock()
	defer d.mu.Unlock()
	// What its end reports is about a file that nobody reads any more.
	_ = d.connections.close()
	d.connections = next
	return nil
}

// mayFollow says why what is in the place of the file that was open is not to be
// opened.
func (d *database) mayFollow() error {
	if d.ours == nil {
		return nil
	}
	if err := d.ours(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrReplaced, err)
	}
	return nil
}

// close waits for the write in progress and closes everything.
func (d *database) close() error {
	return errors.Join(d.queue.close(), d.connections.close())
}

// sameFile reports whether path names the file that is known by info.
func sameFile(path string, info os.FileInfo) bool {
	now, err := os.Stat(path)
	return err == nil && info != nil && os.SameFile(now, info)
}
