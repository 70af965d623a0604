package rag

import (
	"context"
	"crypto/subtle"
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
}

// ensureMark is checkMark for a database that may be new: it gets its mark before anything
// else is in it.
func (d *database) ensureMark(ctx context.Context, db *sql.DB) error {
	if fresh, err := isFresh(ctx, db); err != nil {
		return err
	} else if !fresh {
		return d.checkMark(ctx, db)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if _, err := tx.ExecContext(ctx, "CREATE TABLE place (mark TEXT NOT NULL) STRICT"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO place (mark) VALUES (?)", d.mark); err != nil {
		return err
	}
	return tx.Commit()
}

// checkMark compares the mark of a database with the one that it must carry. One in which
// there is nothing needs none.
func (d *database) checkMark(ctx context.Context, db *sql.DB) error {
	if fresh, err := isFresh(ctx, db); err != nil || fresh {
		return err
	}
	found, err := readMark(ctx, db)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(found), []byte(d.mark)) != 1 {
		return &DamageError{Path: d.path, Err: ErrForeign}
	}
	return nil
}

// isFresh reports whether nothing is in a database.
func isFresh(ctx context.Context, db *sql.DB) (bool, error) {
	var anything bool
	err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master)").Scan(&anything)
	return !anything, err
}

// readMark returns the mark; empty when there is none. A view of that name is none: it
// could say anything.
func readMark(ctx context.Context, db *sql.DB) (mark string, err error) {
	var tables int
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'place'").Scan(&tables)
	if err != nil || tables == 0 {
		return "", err
	}
	err = db.QueryRowContext(ctx, "SELECT CAST(mark AS TEXT) FROM place LIMIT 1").Scan(&mark)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return mark, err
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
	told.Saved, told.Lost = saved.Saved, saved.Lost
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
	if !exists(d.path) {
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
	aside := free(d.path+mark, now)
	if err := move(d.path, aside); err != nil {
		return nil, fmt.Errorf("set aside %s: %w", d.path, err)
	}
	return &Damage{Path: d.path, Aside: aside, Err: found.Err}, nil
}

// isOurs reports whether the mark of a damaged file can be read.
func (d *database) isOurs(ctx context.Context) bool {
	db := sharedfile.Pool(d.path, 1, "query_only(1)")
	defer db.Close() //nolint:errcheck // it was only read
	found, err := readMark(ctx, db)
	return err == nil && subtle.ConstantTimeCompare([]byte(found), []byte(d.mark)) == 1
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

// free is a name that begins so and ends with the time in UTC, which no file has.
func free(begin string, now time.Time) string {
	named := begin + now.UTC().Format("20060102T150405Z")
	name := named
	for n := 2; exists(name); n++ {
		name = fmt.Sprintf("%s-%d", named, n)
	}
	return name
}

// move renames a database and its log.
func move(path, to string) error {
	if err := sharedfile.Rename(path, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
