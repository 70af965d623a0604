package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// maxReaders bounds the connections a process reads with.
const maxReaders = 4

// sidecars are the endings of the files that SQLite keeps beside a database.
var sidecars = []string{"-wal", "-shm"}

// connections are those of one process to one file: the one it writes with and
// those it reads with.
type connections struct {
	writer   *sql.DB
	reader   *sql.DB
	memo     *memo       // reads with one of reader's
	identity os.FileInfo // which file this is, whatever its path comes to name
	lossy    bool        // rows were missing when it was opened, see [store.Keeper]
}

// connect opens the file of d, creating and migrating it where needed. The caller
// has the lock of d's queue.
func connect(ctx context.Context, d *database) (c connections, err error) {
	path := d.path
	if err := ensureFile(path); err != nil {
		return connections{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
			c = connections{}
		}
	}()
	if c.identity, err = os.Stat(path); err != nil {
		return c, err
	}
	if err = c.open(d); err != nil {
		return c, err
	}
	err = d.busy.retry(ctx, func() error {
		if err := d.ensureMark(ctx, c.writer); err != nil {
			return err
		}
		return migrate(ctx, c.writer, filepath.Dir(path), d.name)
	})
	if err != nil {
		return c, err
	}
	c.lossy, err = isLossy(ctx, c.writer)
	return c, err
}

// open prepares the connections to the file of d.
func (c *connections) open(d *database) (err error) {
	if c.writer, err = openPool(d.path, 1); err != nil {
		return err
	}
	if c.reader, err = openPool(d.path, maxReaders, "query_only(1)"); err != nil {
		return err
	}
	c.memo = newMemo(c.reader, d.queue.tally, d.poll)
	return nil
}

// connectCurrent opens the file of d as it is, without a turn. It is not ok when
// the file has to be made, migrated or looked at more closely, and when it was
// replaced meanwhile.
func connectCurrent(ctx context.Context, d *database) (c connections, ok bool) {
	info, err := os.Lstat(d.path)
	if err != nil || !info.Mode().IsRegular() {
		return connections{}, false
	}
	matchSidecars(d.path, info.Mode().Perm())
	defer func() {
		if !ok {
			_ = c.close() // what is wrong shows again to who has the turn
			c = connections{}
		}
	}()
	c.identity = info
	if err := c.open(d); err != nil {
		return c, false
	}
	if current, err := isCurrent(ctx, c.reader, d.name); !current || err != nil || d.checkMark(ctx, c.reader) != nil {
		return c, false
	}
	if c.lossy, err = isLossy(ctx, c.reader); err != nil {
		return c, false
	}
	return c, sameFile(d.path, info)
}

func (c connections) close() error {
	var errs []error
	if c.memo != nil {
		errs = append(errs, c.memo.close())
	}
	for _, pool := range []*sql.DB{c.reader, c.writer} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// ensureFile creates the file for its owner only where it is missing; SQLite
// would do it by the umask. Its -wal and -shm files get the same mode. A file
// that exists is not opened: closing it would free every lock that SQLite has
// on it in this process.
func ensureFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return notRegular(path)
	case err == nil:
		matchSidecars(path, info.Mode().Perm())
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	// What still lies beside it belongs to a file that is gone.
	for _, ending := range sidecars {
		if err := os.Remove(path + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// matchSidecars gives the files beside a database its mode. SQLite took the mode
// that the database had when it made them; after a person has given back the
// rights to the database, connections would still be read-only. Where it fails,
// SQLite says what it may not do.
func matchSidecars(path string, mode os.FileMode) {
	for _, ending := range sidecars {
		info, err := os.Lstat(path + ending)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm() != mode {
			_ = os.Chmod(path+ending, mode)
		}
	}
}

func notRegular(path string) error {
	return fmt.Errorf("%s is not a regular file; refusing to open a database through it", path)
}

// openPrivate opens a file of the store for reading and writing, creating it
// for its owner only.
func openPrivate(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path)
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// openPool prepares connections to path; none is made yet. The file must exist.
func openPool(path string, most int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}}
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
