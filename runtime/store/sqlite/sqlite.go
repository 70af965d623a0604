package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Options of a store; the zero value is what programs want.
type Options struct {
	// Now is the clock of the two changes that are not given a time by the
	// caller (SetProcess, RecordCost); nil means time.Now.
	Now func() time.Time
	// Poll is how long a commit can go unnoticed, by Changes and by what reads rows,
	// that is made without this package or of which the operating system reports
	// nothing; 0 means [sharedfile.DefaultPoll].
	Poll time.Duration
	// Patience bounds the waits for other processes; 0 means ten seconds for one that
	// runs and a second for one that is suspended.
	Patience Patience
	// OneConnection reads and writes each database with the same connection, see
	// [sharedfile.Options].
	OneConnection bool
	// Process is this one, which those who wait for it are told.
	Process thread.Process
	// Holder finds out who has one of the files locked, given who says so in them;
	// nil believes those.
	Holder func(recorded thread.Process, files ...string) thread.Holder
	// Mark is what a database must carry to be believed, by its name; one that does
	// not is as good as damaged. A new one gets it. Nil: none is asked for.
	Mark func(database string) string
	// Ours is asked before a file is opened that has come in the place of the one that
	// was open: an error says that the folder is another's by now, in which nothing is
	// opened, set aside or made. Nil: it is always the caller's.
	Ours func() error
	// Rebuild brings the rows back that the store has lost ([store.Keeper]). It is
	// called before anything else is done in a database that has come in the place
	// of the one that was open, or was found to lack them by Open; calls of the
	// store wait for it, and fail with its error. Nil leaves them missing.
	Rebuild func(context.Context, *Store) error
	// Damaged is told of a damaged database that shows after Open. It may set that
	// aside. A call on its way fails nevertheless, if it would have written. Nil
	// leaves it.
	Damaged func(context.Context, *store.CorruptError)
}

// Patience is how long the waits for other processes may last.
type Patience = sharedfile.Patience

// The database files of a store.
const (
	registryFile = "registry.db"
	ledgerFile   = "budget_ledger.db"
)

// names are what each database's queue and folder of migrations are called.
var names = map[string]string{registryFile: "registry", ledgerFile: "ledger"}

// Store is a [store.Store] in two SQLite files. It is safe for concurrent use.
type Store struct {
	*sqlstore.Store

	dir      string
	registry *database
	ledger   *database

	rebuilding sync.Mutex
}

var _ store.Store = (*Store)(nil)

// Open opens the store in dir, which is created when missing (mode 0700, files
// 0600). Any number of processes may have it open. A schema of a newer binary
// is refused with [store.ErrTooNew], a symbolic link in place of the folder or
// of a file with an error that names it. Ctx bounds the opening only.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Poll < 0 {
		return nil, fmt.Errorf("poll interval %v is negative", opts.Poll)
	}
	dir, err := prepareDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open thread store: %w", err)
	}
	s := &Store{dir: dir}
	hooks := s.hooks(opts)
	if s.registry, err = openDatabase(ctx, dir, registryFile, opts, hooks); err != nil {
		return nil, fmt.Errorf("open thread store: %w", err)
	}
	if s.ledger, err = openDatabase(ctx, dir, ledgerFile, opts, hooks); err != nil {
		return nil, fmt.Errorf("open thread store: %w", errors.Join(err, s.registry.Close()))
	}
	s.Store = sqlstore.New(s.registry, s.ledger, sqlstore.SQLite, opts.Now)
	return s, nil
}

// prepareDir creates dir where it is missing and returns its absolute path, so
// that a later change of the working directory does not move the store.
func prepareDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, os.MkdirAll(dir, 0o700)
	}
	switch {
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return "", fmt.Errorf("%s is a symbolic link; the thread folder must be a real one", dir)
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", dir)
	}
	return dir, nil
}

// Writable has a turn at each database and gives it back. The error is a
// *thread.BusyError when somebody holds one and does not go on.
func (s *Store) Writable(ctx context.Context) error {
	var errs []error
	for _, d := range []*database{s.registry, s.ledger} {
		release, err := d.Acquire(ctx)
		if err == nil {
			release()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Changes implements [store.Watcher]. After Close the channel is closed from
// the start.
func (s *Store) Changes(ctx context.Context) <-chan struct{} { return s.registry.Changes(ctx) }

// Milestones implements [store.Watcher]. A file tells of every commit.
func (s *Store) Milestones(ctx context.Context) <-chan struct{} { return s.Changes(ctx) }

// Close ends every channel of Changes, waits for writes in progress and closes
// the files. Later calls fail.
func (s *Store) Close() error { return errors.Join(s.registry.Close(), s.ledger.Close()) }
