package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	lib "modernc.org/sqlite/lib"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// database is one of the files of a store, with what is remembered of its rows.
type database struct {
	*sharedfile.File
	path string
	name string       // of its queue, and of its folder of migrations
	mark string       // which it must carry; empty: none
	ours func() error // see Options.Ours
	rows rowCache

	loss
}

var (
	_ sharedfile.Owner  = (*database)(nil)
	_ sqlstore.Database = (*database)(nil)
)

// openDatabase opens dir/file, creating and migrating it where needed. Hooks may
// have nil functions.
func openDatabase(ctx context.Context, dir, file string, opts Options, hooks hooks) (d *database, err error) {
	d = &database{path: filepath.Join(dir, file), name: names[file], ours: opts.Ours, loss: loss{hooks: hooks}}
	if opts.Mark != nil {
		d.mark = opts.Mark(d.name)
	}
	if d.File, err = sharedfile.Open(ctx, d.path, lockPath(dir, d.name), d, opts.shared()); err != nil {
		return nil, err
	}
	return d, nil
}

// lockPath is the file whose lock is the queue of a database.
func lockPath(dir, name string) string { return filepath.Join(dir, name+".lock") }

// Ready implements [sharedfile.Owner].
func (d *database) Ready(ctx context.Context, db *sql.DB) bool {
	current, err := isCurrent(ctx, db, d.name)
	return current && err == nil && d.checkMark(ctx, db) == nil
}

// Prepare implements [sharedfile.Owner].
func (d *database) Prepare(ctx context.Context, db *sql.DB) error {
	// In a database that has nothing yet, what is deleted later can be given back in parts.
	if _, err := db.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
		return err
	}
	if err := d.ensureMark(ctx, db); err != nil {
		return err
	}
	return migrate(ctx, db, filepath.Dir(d.path), d.name)
}

// MayFollow implements [sharedfile.Owner].
func (d *database) MayFollow() error {
	if d.ours == nil {
		return nil
	}
	return d.ours()
}

// CannotFollow implements [sharedfile.Owner].
func (d *database) CannotFollow(why error) error { return fmt.Errorf("%w: %w", store.ErrReplaced, why) }

// Explain implements [sharedfile.Owner].
func (d *database) Explain(err error) error { return explain(d.path, err) }

// Write implements [sqlstore.Database]. Waiting for the turn ends with ctx; a
// transaction that has begun does not, so that its outcome is always known. They are
// short.
func (d *database) Write(ctx context.Context, level sqlstore.Durability, f func(context.Context, *sql.Tx) error) error {
	return d.whole(ctx, func() error { return d.File.Write(ctx, synchronous(level), d.complete, f) })
}

// WriteFrom implements [sqlstore.Database]. There are no round trips.
func (d *database) WriteFrom(ctx context.Context, level sqlstore.Durability, _ sqlstore.Statement, f func(context.Context, *sql.Tx) error) error {
	return d.Write(ctx, level, f)
}

// Update implements [sqlstore.Database]. The answer that is remembered is changed with the
// row.
func (d *database) Update(ctx context.Context, level sqlstore.Durability, u sqlstore.Update) (changed bool, err error) {
	err = d.whole(ctx, func() error {
		changed, err = d.File.Update(ctx, synchronous(level), d.complete, sharedfile.Update{
			Query: u.Query, Args: u.Args, Learn: func(before, now sharedfile.Seen) { d.rows.learn(before, now, u) },
		})
		return err
	})
	return changed, err
}

// synchronous is a durability as SQLite has it. The files are on the machine of the
// processes.
func synchronous(level sqlstore.Durability) sharedfile.Durability {
	if level == sqlstore.Durable {
		return sharedfile.Durable
	}
	return sharedfile.Relaxed
}

// whole runs what writes to the database, again when missing rows had to be brought
// back first.
func (d *database) whole(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, errIncomplete) {
			d.tell(ctx, err)
			return err
		}
		if err := d.rebuild(ctx); err != nil {
			return err
		}
	}
}

// WriteAsIs implements [sqlstore.Database].
func (d *database) WriteAsIs(ctx context.Context, level sqlstore.Durability, f func(context.Context, *sql.Tx) error) error {
	return d.File.Write(ctx, synchronous(level), func() error { return nil }, f)
}

// Restored implements [sqlstore.Database].
func (d *database) Restored(ctx context.Context, tx *sql.Tx) error { return setLoss(ctx, tx, whole) }

// BreaksRule implements [sqlstore.Database].
func (d *database) BreaksRule(err error) bool {
	code, _ := sharedfile.Code(err)
	return code == lib.SQLITE_CONSTRAINT
}

// Read implements [sqlstore.Database]: it runs f again while the file is locked or when
// it was replaced meanwhile.
func (d *database) Read(ctx context.Context, f func(context.Context, *sql.DB) error) error {
	return d.readFrom(ctx, func(r sharedfile.Reader) error { return f(ctx, r.DB) })
}

// Recall implements [sqlstore.Database].
func (d *database) Recall(
	ctx context.Context, q sqlstore.Question, read func(context.Context, *sql.Conn) (any, error),
) (answer any, err error) {
	err = d.readFrom(ctx, func(r sharedfile.Reader) error {
		return r.View.Look(ctx, func(ctx context.Context, now sharedfile.Seen) (err error) {
			answer, err = d.rows.lookUp(ctx, now, q, read)
			return err
		})
	})
	return answer, err
}

// readFrom is Read with the choice of what is read from.
func (d *database) readFrom(ctx context.Context, f func(sharedfile.Reader) error) error {
	for {
		if err := d.Follow(ctx); err != nil {
			return err
		}
		if d.complete() != nil {
			if err := d.rebuild(ctx); err != nil {
				return err
			}
		}
		err := d.File.Read(ctx, f)
		d.tell(ctx, err)
		if err == nil || ctx.Err() != nil || !d.Replaced() {
			return err
		}
	}
}

// readAsIs is Read for callers that look whether rows are missing.
func (d *database) readAsIs(ctx context.Context, f func(*sql.DB) error) error {
	if err := d.Follow(ctx); err != nil {
		return err
	}
	return d.File.Read(ctx, func(r sharedfile.Reader) error { return f(r.DB) })
}
