package sharedfile

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sidecars are the endings of the files that SQLite keeps beside a database.
var sidecars = []string{"-wal", "-shm"}

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
	// Files that still lie beside it belong to one that is gone.
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

// Pool prepares connections to a database file, which must exist; none is made yet.
// One of more than a single connection is for reading.
func Pool(path string, most int, pragmas ...string) *sql.DB {
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}}
	pragmas = append(pragmas, "foreign_keys(1)", "busy_timeout("+strconv.Itoa(busyTimeout)+")")
	for _, p := range pragmas {
		query.Add("_pragma", p)
	}
	db := sql.OpenDB(connector{name: fileURI(path) + "?" + query.Encode()})
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db
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

// Rename gives a database and its log another name in its folder. The database
// goes first: without it nobody opens the log.
func Rename(path, to string) error {
	if err := os.Rename(path, to); err != nil {
		return err
	}
	for _, ending := range sidecars {
		if err := os.Rename(path+ending, to+ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

// SetAside renames a database and its log to a free name, which begins as told and goes on
// with the time. The name is returned with an error, too.
func SetAside(path, begin string, now time.Time) (aside string, err error) {
	named := begin + now.UTC().Format("20060102T150405Z")
	aside = named
	for n := 2; Exists(aside); n++ {
		aside = fmt.Sprintf("%s-%d", named, n)
	}
	return aside, Rename(path, aside)
}

// Exists reports whether something has a name, or may have: what cannot be looked at is
// taken to be there.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// sameFile reports whether path names the file that is known by info.
func sameFile(path string, info os.FileInfo) bool {
	now, err := os.Stat(path)
	return err == nil && info != nil && os.SameFile(now, info)
}
