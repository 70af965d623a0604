package rag

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

// Damage is a file that was set aside, in whose place there is a new one.
type Damage struct {
	Path  string // of the index
	Aside string // where the file is now
	Err   error  // what was wrong with it; ErrForeign of one that nothing was read of
	// Rows that could be read stand in the new file, vectors included where they could be
	// read. Lost counts those of which something could not.
	Saved, Lost int
	// Unknown says that nothing told how many rows there were, so that more are lost.
	Unknown bool
}

// ensureMark is checkMark for a database that may be new, which gets its mark.
func (d *database) ensureMark(ctx context.Context, db *sql.DB) error {
	return d.foreign(sharedfile.Mark(d.mark).Ensure(ctx, db))
}

// checkMark compares the mark of a database with the one that it must carry.
func (d *database) checkMark(ctx context.Context, db *sql.DB) error {
	return d.foreign(sharedfile.Mark(d.mark).Check(ctx, db))
}

func (d *database) foreign(err error) error {
	if errors.Is(err, sharedfile.ErrForeign) {
		return &DamageError{Path: d.path, Err: ErrForeign}
	}
	return err
}

// setAside moves a damaged file out of the way. Of several processes one moves it: the
// file is looked at again with the turn of a writer, and is left when it is sound by then.
func (x *Index) setAside(ctx context.Context, damage *DamageError) (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.drop(); err != nil && !errors.As(err, new(*DamageError)) {
		return err
	}
	home, err := x.opts.Find(ctx)
	if err != nil {
		return err
	}
	q, err := sharedfile.OpenQueue(lockPath(damage.Path), x.opts.Shared)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	told, err := moveDamaged(ctx, q, newDatabase(damage.Path, home.Mark), x.opts.Now())
	if err != nil || told == nil {
		return err
	}
	if x.db, err = openDatabase(ctx, home, x.opts); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	saved, err := x.salvageAll(ctx)
	if err != nil {
		return err
	}
	if saved.Aside != "" {
		told.Aside = saved.Aside
	}
	told.Saved, told.Lost, told.Unknown = saved.Saved, saved.Lost, saved.Unknown
	x.opts.Damaged(*told)
	return nil
}

// moveDamaged looks at the file with the turn of a writer, and moves it when it is damaged.
func moveDamaged(ctx context.Context, q *sharedfile.Queue, d *database, now time.Time) (*Damage, error) {
	release, err := q.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if !sharedfile.Exists(d.path) {
		return nil, nil
	}
	found, ok := errors.AsType[*DamageError](d.inspect(ctx, q))
	if !ok {
		return nil, nil
	}
	if d.named && !d.isOurs(ctx) {
		return nil, found
	}
	mark := pendingMark
	if errors.Is(found, ErrForeign) {
		mark = foreignMark
	}
	aside, err := sharedfile.SetAside(d.path, d.path+mark, now)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("set aside %s: %w", d.path, err)
	}
	return &Damage{Path: d.path, Aside: aside, Err: found.Err}, nil
}

// isOurs reports whether the mark of a damaged file can be read.
func (d *database) isOurs(ctx context.Context) bool {
	db := sharedfile.Pool(d.path, 1, "query_only(1)")
	defer db.Close() //nolint:errcheck // it was only read
	stands, err := sharedfile.Mark(d.mark).Stands(ctx, db)
	return err == nil && stands
}

// These stand in the names of files that were set aside, before the time.
const (
	foreignMark = ".foreign-" // nothing of it is read
	pendingMark = ".damaged-" // its rows are to be brought back
	doneMark    = ".corrupt-" // they have been, as far as they could be read
)

// pending are the damaged files whose rows are to be brought back.
func pending(path string) (files []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, filepath.Base(path)+pendingMark) && !strings.HasSuffix(name, "-wal") && !strings.HasSuffix(name, "-shm") {
			files = append(files, filepath.Join(filepath.Dir(path), name))
		}
	}
	return files, err
}

// inspect looks at the mark and reads everything in the file.
func (d *database) inspect(ctx context.Context, q *sharedfile.Queue) (err error) {
	db := sharedfile.Pool(d.path, 1, "query_only(1)")
	defer func() { err = errors.Join(err, db.Close()) }()
	err = q.Retry(ctx, func() error {
		if err := d.checkMark(ctx, db); err != nil {
			return err
		}
		var answer string
		if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&answer); err != nil || answer == "ok" {
			return err
		}
		return &DamageError{Path: d.path, Err: errors.New(strings.Join(strings.Fields(answer), " "))}
	})
	return d.Explain(err)
}
