package rag

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Home is where an index lies.
type Home struct {
	Path string // of the database; empty: there is none yet
	// Mark is what it must carry. One that does not is set aside. Empty is for a file that
	// a person has named, in whose place nothing is moved but an index of ours.
	Mark string
}

// Options of an index.
type Options struct {
	// Find tells where the index lies and changes nothing; Make makes what is missing of
	// its place, and is called before the first write. Both are called once at most where
	// they succeed with a path.
	Find, Make func(context.Context) (Home, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Damaged is told of a file that was set aside. It may be nil.
	Damaged func(Damage)
	// Shared is how the file is shared with other processes. One that does not go on is a
	// *thread.BusyError, unless Shared.Busy says more of it.
	Shared sharedfile.Options

	step    func(name string) // of tests: what a crash may come between
	chapter int               // of tests: how many vectors a new chapter has
}

// At are the options of an index at one path, whose folder is made with it.
func At(path, mark string) Options {
	here := func(context.Context) (Home, error) { return Home{Path: path, Mark: mark}, nil }
	return Options{Find: here, Make: here}
}

// Index is an index that may not be there yet. It is safe for concurrent use, and opens
// nothing before it is needed.
type Index struct {
	opts Options

	mu     sync.Mutex
	db     *database // nil: not open
	closed bool
}

// New returns the index of a place. Nothing is opened or made.
func New(opts Options) *Index {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.chapter == 0 {
		opts.chapter = vector.MaxRecords
	}
	if opts.Shared.Busy == nil {
		opts.Shared.Busy = func(w sharedfile.Wait) (bool, error) {
			return false, &thread.BusyError{Path: w.Path, Waited: w.Waited}
		}
	}
	if opts.Damaged == nil {
		opts.Damaged = func(Damage) {}
	}
	return &Index{opts: opts}
}

// Close closes the file, if it is open. Later calls fail with ErrClosed.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return x.drop()
}

// drop closes the file. The caller has the lock.
func (x *Index) drop() error {
	if x.db == nil {
		return nil
	}
	db := x.db
	x.db = nil
	return db.Close()
}

// open returns the database, and nil where there is none and none is to be made.
func (x *Index) open(ctx context.Context, toWrite bool) (*database, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, ErrClosed
	}
	if x.db != nil && (toWrite || sharedfile.Exists(x.db.path)) {
		return x.db, nil
	}
	if err := x.drop(); err != nil { // somebody has deleted it
		return nil, err
	}
	locate := x.opts.Find
	if toWrite {
		locate = x.opts.Make
	}
	home, err := locate(ctx)
	if err != nil || home.Path == "" {
		return nil, err
	}
	if !toWrite && !sharedfile.Exists(home.Path) {
		if left, err := pending(home.Path); err != nil || len(left) == 0 {
			return nil, err
		}
	}
	x.db, err = openDatabase(ctx, home, x.opts)
	if err != nil {
		return nil, fmt.Errorf("open the index: %w", err)
	}
	_, _ = x.salvageAll(ctx) // goes on with the work of a process that died; a failure is tried again the next time
	return x.db, nil
}

// read runs f in one transaction, so that all it reads is of one moment. Where there is no
// file f is not called. F can be called several times.
func (x *Index) read(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	return x.mending(ctx, false, func(db *database) error {
		if db == nil {
			return nil
		}
		return db.read(ctx, f)
	})
}

// write runs f in one transaction, which is on disk when it returns.
func (x *Index) write(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	return x.mending(ctx, true, func(db *database) error {
		return db.Write(ctx, sharedfile.Durable, nothing, func(ctx context.Context, tx *sql.Tx) error {
			// Deleted bytes are overwritten. The setting is one of the connection.
			if _, err := tx.ExecContext(ctx, "PRAGMA secure_delete = FAST"); err != nil {
				return err
			}
			return f(ctx, tx)
		})
	})
}

// mending runs f, and again after a damaged file was set aside.
func (x *Index) mending(ctx context.Context, toWrite bool, f func(*database) error) error {
	for attempt := 0; ; attempt++ {
		db, err := x.open(ctx, toWrite)
		if err == nil {
			err = f(db)
		}
		damage, ok := errors.AsType[*DamageError](err)
		if !ok || attempt == maxMendings {
			return err
		}
		if err := x.setAside(ctx, damage); err != nil {
			return err
		}
	}
}

// maxMendings bounds how often one call sets a file aside: one that is damaged again at
// once lies on a disk that fails.
const maxMendings = 2

// prepareDir makes the folder of a database, for its owner only.
func prepareDir(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder, or a link to one; the index needs a real one", dir)
	}
	return nil
}
