package sqlite

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

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

// SetAside moves a damaged database of a store out of the way, with its log, to
// a name that ends in ".corrupt-" and the time in UTC, so that the next Open
// makes a new one. Path is that of a [store.CorruptError]. Of several processes
// one moves it: the file is looked at again under the lock that writers queue
// for, and when it is sound by then, or gone, aside is empty. One that lacks its
// mark, see [Options], is not sound. It reads the whole file, and waits for its turn
// until ctx ends.
//
// Processes that have the file open turn to the new one by themselves.
func SetAside(
	ctx context.Context, path string, now time.Time, mark func(database string) string,
) (aside string, err error) {
	aside, err = setAside(ctx, path, now, mark)
	if err != nil {
		return "", fmt.Errorf("set aside %s: %w", path, err)
	}
	return aside, nil
}

func setAside(
	ctx context.Context, path string, now time.Time, mark func(database string) string,
) (aside string, err error) {
	dir, file := filepath.Split(path)
	name, ok := names[file]
	if !ok {
		return "", errors.New("it is no database of a thread store")
	}
	q, err := sharedfile.OpenQueue(lockPath(dir, name), Options{}.shared())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	release, err := q.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	d := database{path: path}
	if mark != nil {
		d.mark = mark(name)
	}
	damage := new(store.CorruptError)
	if err := d.inspectFile(ctx, q); !errors.As(err, &damage) {
		return "", err
	}
	return sharedfile.SetAside(path, path+asideMark, now)
}

// inspectFile looks at the mark and reads everything in the file, indexes against
// tables as well.
func (d *database) inspectFile(ctx context.Context, q *sharedfile.Queue) (err error) {
	db := sharedfile.Pool(d.path, 1, "query_only(1)")
	defer func() { err = errors.Join(err, db.Close()) }()
	return explain(d.path, q.Retry(ctx, func() error {
		if err := d.checkMark(ctx, db); err != nil {
			return err
		}
		return inspect(ctx, db, d.path, "integrity_check")
	}))
}

// Check implements [store.Keeper]. It does not compare indexes with their
// tables, which would take several times as long.
func (s *Store) Check(ctx context.Context) error {
	var errs []error
	for _, d := range []*database{s.registry, s.ledger} {
		errs = append(errs, d.Read(ctx, func(ctx context.Context, db *sql.DB) error { return inspect(ctx, db, d.path, "quick_check") }))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check thread store: %w", err)
	}
	return nil
}

// inspect runs a pragma that answers with "ok" or with what is damaged.
func inspect(ctx context.Context, db *sql.DB, path, pragma string) error {
	var answer string
	if err := db.QueryRowContext(ctx, "PRAGMA "+pragma+"(1)").Scan(&answer); err != nil {
		return err
	}
	if answer == "ok" {
		return nil
	}
	return &store.CorruptError{Path: path, Err: errors.New(strings.Join(strings.Fields(answer), " "))}
}

// asideMark stands in the names of what was set aside, before the time.
const asideMark = ".corrupt-"
