package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"os"
)

// maxReaders bounds the connections a process reads with.
const maxReaders = 4

// connections are those of one process to one file: the one it writes with and
// those it reads with, which can be the same.
type connections struct {
	writer      *sql.DB
	reader      *sql.DB
	view        *View       // reads with one of reader's
	identity    os.FileInfo // which file this is, whatever its path comes to name
	userVersion int         // of the file when it was opened
}

// connect opens the file, creating and preparing it where needed. The caller has
// the turn.
func (f *File) connect(ctx context.Context) (c connections, err error) {
	if err := ensureFile(f.path); err != nil {
		return connections{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
			c = connections{}
		}
	}()
	if c.identity, err = os.Stat(f.path); err != nil {
		return c, err
	}
	c.open(f)
	err = f.busy.retry(ctx, func() error { return f.owner.Prepare(ctx, c.writer) })
	if err != nil {
		return c, err
	}
	return c, c.readUserVersion(ctx, c.writer)
}

// open prepares the connections to the file.
func (c *connections) open(f *File) {
	c.writer = Pool(f.path, 1)
	c.reader = c.writer
	if !f.one {
		c.reader = Pool(f.path, maxReaders, "query_only(1)")
	}
	c.view = newView(c.reader, f)
}

func (c *connections) readUserVersion(ctx context.Context, db *sql.DB) error {
	return db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&c.userVersion)
}

// connectCurrent opens the file as it is, without a turn. It is not ok when the file
// has to be made, prepared or looked at more closely, and when it was replaced
// meanwhile.
func (f *File) connectCurrent(ctx context.Context) (c connections, ok bool) {
	info, err := os.Lstat(f.path)
	if err != nil || !info.Mode().IsRegular() {
		return connections{}, false
	}
	matchSidecars(f.path, info.Mode().Perm())
	defer func() {
		if !ok {
			_ = c.close() // a fault shows again to the one who has the turn
			c = connections{}
		}
	}()
	c.identity = info
	c.open(f)
	if !f.owner.Ready(ctx, c.reader) || c.readUserVersion(ctx, c.reader) != nil {
		return c, false
	}
	return c, sameFile(f.path, info)
}

func (c connections) close() error {
	var errs []error
	if c.view != nil {
		errs = append(errs, c.view.close())
	}
	for _, pool := range []*sql.DB{c.reader, c.writer} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}
