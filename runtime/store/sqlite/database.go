package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

const (
	durable = sharedfile.Durable
	relaxed = sharedfile.Relaxed
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

var _ sharedfile.Owner = (*database)(nil)

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

// write runs f in an immediate transaction, which f's error takes back. Waiting
// for the turn ends with ctx; a transaction that has begun does not, so that
// its outcome is always known. They are short.
func (d *database) write(ctx context.Context, level sharedfile.Durability, f func(context.Context, *sql.Tx) error) error {
	return d.whole(ctx, func() error { return d.Write(ctx, level, d.complete, f) })
}

// update is write for a single statement.
func (d *database) update(ctx context.Context, level sharedfile.Durability, u sharedfile.Update) (changed bool, err error) {
	err = d.whole(ctx, func() error {
		changed, err = d.Update(ctx, level, d.complete, u)
		return err
	})
	return changed, err
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

// writeAsIs is write for who brings missing rows back.
func (d *database) writeAsIs(ctx context.Context, level sharedfile.Durability, f func(context.Context, *sql.Tx) error) error {
	return d.Write(ctx, level, func() error { return nil }, f)
}

// read runs f, which reads with the *sql.DB it is given, again while the file is
// locked or when it was replaced meanwhile.
func (d *database) read(ctx context.Context, f func(*sql.DB) error) error {
	return d.readFrom(ctx, func(r sharedfile.Reader) error { return f(r.DB) })
}

// readFrom is read with the choice of what is read from.
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
		err := d.Read(ctx, f)
		d.tell(ctx, err)
		if err == nil || ctx.Err() != nil || !d.Replaced() {
			return err
		}
	}
}

// readAsIs is read for who looks whether rows are missing.
func (d *database) readAsIs(ctx context.Context, f func(*sql.DB) error) error {
	if err := d.Follow(ctx); err != nil {
		return err
	}
	return d.Read(ctx, func(r sharedfile.Reader) error { return f(r.DB) })
}
