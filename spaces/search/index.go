package search

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed schema.sql
var schema string

// schemaVersion is raised with every change of schema.sql or of what is put into
// its tables.
const schemaVersion = 6

var (
	// errVersion says that a file has the tables of another version.
	errVersion = errors.New("search index of another version")
	// errForeign says that a file is a database of something else, which is left
	// alone.
	errForeign = errors.New("not a search index")
)

// Index is a search index. It is safe for concurrent use, by other processes as
// well. Close it.
type Index struct {
	path       string // empty: in memory
	left       error  // why the index is in memory
	src        Source
	stamps     stamps
	patience   time.Duration
	maxFinding time.Duration
	maxItems   int
	step       func(name string) // of tests: what a crash may come between
	turn       chan struct{}     // holds a token while a search runs, or a batch is indexed
	db         *sql.DB           // nil: to be opened
	closed     bool
	builder    builder
}

// Patience is how long a search waits for the index to be brought up to date.
const Patience = 2 * time.Second

// maxItems is how many items are indexed: more than anybody has.
const maxItems = 250_000

// Options of an index that only tests set.
type options struct {
	patience, maxFinding time.Duration
	maxItems             int
	now                  func() time.Time
	step                 func(name string)
}

// Open opens the index at path, or makes one. The folder is made as needed.
// Where no file can be kept, and with an empty path, the index is in memory.
func Open(ctx context.Context, path string, src Source) (*Index, error) {
	return open(ctx, path, src, options{Patience, maxFinding, maxItems, time.Now, func(string) {}})
}

func open(ctx context.Context, path string, src Source, o options) (*Index, error) {
	x := &Index{
		path:       path,
		src:        src,
		stamps:     stamps{roots: src.Roots(), now: o.now, hashes: map[string]string{}},
		patience:   o.patience,
		maxFinding: o.maxFinding,
		maxItems:   o.maxItems,
		step:       o.step,
		turn:       make(chan struct{}, 1),
	}
	if err := x.open(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// Close releases the index. A search that runs ends first, a later one fails, and
// the next who searches indexes the rest.
func (x *Index) Close() error {
	x.builder.end()
	x.turn <- struct{}{}
	defer func() { <-x.turn }()
	x.closed = true
	return x.drop()
}

// InMemory says why the index is kept in memory; nil where it is a file.
func (x *Index) InMemory() error { return x.left }

// drop closes the database.
func (x *Index) drop() error {
	if x.db == nil {
		return nil
	}
	db := x.db
	x.db = nil
	return db.Close()
}

// leaveFile goes on in memory.
func (x *Index) leaveFile(why error) { x.path, x.left = "", why }

// open sets x.db: to the file, to a new file when that one is damaged, to memory
// when neither works.
func (x *Index) open(ctx context.Context) error {
	if x.path != "" {
		db, err := x.openFile(ctx)
		if isDamage(err) {
			if err = x.removeFile(); err == nil {
				db, err = x.openFile(ctx)
			}
		}
		if err == nil {
			x.db = db
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		x.leaveFile(err)
	}
	db, err := openDB(ctx, "file::memory:")
	if err != nil {
		return err
	}
	x.db = db
	return nil
}

// openFile opens the file, in whose place nobody else may have put one.
func (x *Index) openFile(ctx context.Context) (*sql.DB, error) {
	if err := os.MkdirAll(filepath.Dir(x.path), 0o700); err != nil {
		return nil, err
	}
	x.step("folder")
	if err := own(x.path, x.stamps.roots); err != nil {
		return nil, err
	}
	// SQLite would make it readable by others, and gives its side files the same rights.
	file, err := os.OpenFile(x.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	x.step("file")
	return openDB(ctx, (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(x.path)}).String())
}

// openDB opens a database and makes its tables if it has none.
func openDB(ctx context.Context, name string) (*sql.DB, error) {
	const settings = "?_pragma=busy_timeout(1500)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
	db, err := sql.Open("sqlite", name+settings)
	if err != nil {
		return nil, fmt.Errorf("open search index: %w", err)
	}
	// A database in memory belongs to its connection.
	db.SetMaxOpenConns(1)
	if err := ensureSchema(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open search index: %w", err), db.Close())
	}
	return db, nil
}

func ensureSchema(ctx context.Context, db *sql.DB) error {
	// Mostly it is there, and looking needs no lock.
	if version, _, err := schemaOf(ctx, db); err != nil || version == schemaVersion {
		return err
	}
	return inTx(ctx, db, func(tx *sql.Tx) error {
		version, tables, err := schemaOf(ctx, tx)
		switch {
		case err != nil || version == schemaVersion: // another process was faster
			return err
		case version != 0:
			return errVersion
		case tables > 0:
			return errForeign
		}
		_, err = tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion))
		return err
	})
}

// schemaOf reads the version a file says it has, and how many tables and indexes
// are in it.
func schemaOf(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (version, tables int, err error) {
	err = db.QueryRowContext(ctx, "SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)").
		Scan(&version, &tables)
	return version, tables, err
}

// inTx runs change in a transaction, which holds the write lock from its start.
func inTx(ctx context.Context, db *sql.DB, change func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := change(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// removeFile deletes the index with its side files. A process that still has it
// open goes on with the deleted files until it opens them again.
func (x *Index) removeFile() error {
	for _, suffix := range sideFiles {
		if err := os.Remove(x.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove damaged search index: %w", err)
		}
		x.step("removed" + suffix)
	}
	return nil
}

// isDamage reports that a file is not, or no longer, an index of ours, so that
// deleting it helps.
func isDamage(err error) bool {
	if errors.Is(err, errVersion) {
		return true
	}
	switch primaryCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	case sqlite3.SQLITE_ERROR: // of which most say that a statement is wrong
		return strings.Contains(err.Error(), "no such ") || strings.Contains(err.Error(), "has no column")
	}
	return false
}

// isBusy reports that another process holds the database.
func isBusy(err error) bool {
	code := primaryCode(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// isFailure reports a failure of the database, which may be none the next time.
func isFailure(err error) bool {
	switch primaryCode(err) {
	case sqlite3.SQLITE_OK:
		return false
	case sqlite3.SQLITE_ERROR:
		return isDamage(err)
	}
	return true
}

// primaryCode is the SQLite result code in err without its extension, or
// SQLITE_OK.
func primaryCode(err error) int {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return sqlite3.SQLITE_OK
	}
	return failure.Code() & 0xff
}
