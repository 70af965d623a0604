package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Durability is a value of PRAGMA synchronous.
type Durability string

const (
	// Durable is for a commit that is on disk when it returns.
	Durable Durability = "FULL"
	// Relaxed is for a commit that survives the end of every process, but may be
	// lost with the power. It is ten times cheaper.
	Relaxed Durability = "NORMAL"
)

// Options of a file; the zero value works.
type Options struct {
	// Poll is how long a commit can go unnoticed that nobody counted; 0 means
	// DefaultPoll.
	Poll time.Duration
	// Patience bounds the waits for other processes; 0 means ten seconds for one that
	// runs and a second for one that is suspended.
	Patience Patience
	// Record is left for those who wait while this process has the turn, at most
	// RecordSize bytes; nil leaves what was there.
	Record []byte
	// One connection is both written and read with, one goroutine at a time. That is
	// for processes that do one thing after the other, of which there are many: each
	// connection reads the schema and has caches of its own. A transaction must then be
	// read with itself alone, and no rows be left open while something else is asked.
	One bool
	// Busy tells whether the process that is waited for is suspended, and the error
	// of a wait that is given up now. Nil: nobody knows.
	Busy func(Wait) (stopped bool, err error)
}

// DefaultPoll is what Options.Poll is by default.
const DefaultPoll = 500 * time.Millisecond

// Owner decides what is in a file, and what becomes of it. A method may be called
// by several goroutines.
type Owner interface {
	// Ready reports whether a file can be used as it is. It only reads.
	Ready(ctx context.Context, db *sql.DB) bool
	// Prepare brings a new file, or an old one, to what Ready wants. It is called
	// with the turn, and again while somebody has the file locked.
	Prepare(ctx context.Context, db *sql.DB) error
	// Opened is told of every file that comes into use, with its PRAGMA user_version.
	Opened(userVersion int)
	// MayFollow is asked before a file is opened that has come in the place of the
	// one that was open.
	MayFollow() error
	// CannotFollow says that another file has come in the place of the one that was
	// open, and why it is not used.
	CannotFollow(why error) error
	// Explain says what an error of SQLite means.
	Explain(err error) error
}

// File is one SQLite database with the queue of its writers and this process's
// connections to it. It is safe for concurrent use.
type File struct {
	path    string
	owner   Owner
	queue   *Queue
	busy    waiting       // for locks of SQLite's own
	poll    time.Duration // how long a commit that nobody counted can go unnoticed
	one     bool          // see Options.One
	states  atomic.Uint64 // see Seen.State
	commits atomic.Uint64 // of this process: begun and ended, two for each

	// mu is held for reading by whoever uses the connections, and for writing,
	// with the turn, to exchange them.
	mu  sync.RWMutex
	now connections

	notifier *notifier
}

// Open opens the database at path, whose writers queue for the lock of another
// file, creating and preparing it where needed. A file that needs neither is opened
// without a turn: a reader need not wait for writers.
func Open(ctx context.Context, path, lock string, owner Owner, opts Options) (*File, error) {
	if opts.Poll == 0 {
		opts.Poll = DefaultPoll
	}
	f := &File{path: path, owner: owner, poll: opts.Poll, one: opts.One}
	var err error
	if f.queue, err = OpenQueue(lock, opts); err != nil {
		return nil, err
	}
	f.busy = f.queue.waiting
	f.busy.path = path
	f.busy.files = append([]string{path, path + "-shm"}, f.busy.files...)
	f.notifier = newNotifier(f)
	if current, ok := f.connectCurrent(ctx); ok {
		f.use(current)
		return f, nil
	}
	release, err := f.queue.Acquire(ctx)
	if err != nil {
		return nil, errors.Join(err, f.queue.Close())
	}
	made, err := f.connect(ctx)
	if err == nil {
		f.use(made)
	}
	release()
	if err != nil {
		return nil, errors.Join(owner.Explain(err), f.queue.Close())
	}
	return f, nil
}

// use takes connections into use, in the place of those there were.
func (f *File) use(c connections) {
	f.owner.Opened(c.userVersion)
	f.mu.Lock()
	defer f.mu.Unlock()
	// Errors of closing are about a file that nobody reads any more.
	_ = f.now.close()
	f.now = c
}

// Acquire waits for the turn, which is had until release is called once.
func (f *File) Acquire(ctx context.Context) (release func(), err error) { return f.queue.Acquire(ctx) }

// Write runs g in an immediate transaction, which g's error takes back, unless
// check, with the turn in hand, finds a reason not to. Waiting for the turn ends
// with ctx; a transaction that has begun does not, so that its outcome is always
// known. They are short.
func (f *File) Write(
	ctx context.Context, level Durability, check func() error, g func(context.Context, *sql.Tx) error,
) error {
	return f.inTurn(ctx, check, func() error { return f.transact(ctx, level, g) })
}

// inTurn runs g with the turn in hand, on the file that is at the path now.
func (f *File) inTurn(ctx context.Context, check, g func() error) error {
	release, err := f.queue.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := f.follow(ctx); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := g(); err != nil {
		return f.owner.Explain(err)
	}
	return nil
}

func (f *File) transact(ctx context.Context, level Durability, g func(context.Context, *sql.Tx) error) error {
	inside := context.WithoutCancel(ctx)
	var conn *sql.Conn
	var tx *sql.Tx
	err := f.busy.retry(ctx, func() (err error) {
		if conn, err = f.writeConn(inside, level); err != nil {
			return err
		}
		if tx, err = conn.BeginTx(inside, nil); err != nil {
			return errors.Join(err, conn.Close()) // between the attempts others can read with it
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer conn.Close()  //nolint:errcheck // returns the connection to its pool
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if err := g(inside, tx); err != nil {
		return err
	}
	if _, err := f.commit(tx.Commit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// commit runs what commits, counts it and returns its number. It counts here when it begins
// and when it ends: what is read in between may be older than the commit, and SQLite does not
// tell it apart.
func (f *File) commit(run func() error) (number uint64, err error) {
	f.commits.Add(1)
	number = f.queue.commits.begin()
	err = run()
	f.commits.Add(1)
	if err == nil {
		f.queue.commits.end(number)
	}
	return number, err
}

// writeConn is the connection to write with, whose commits are as durable as that.
func (f *File) writeConn(ctx context.Context, level Durability) (*sql.Conn, error) {
	conn, err := f.now.writer.Conn(ctx)
	if err != nil {
		return nil, err
	}
	// It cannot be set inside a transaction.
	err = conn.Raw(func(c any) error { return c.(*connection).setDurability(ctx, level) })
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Reader is what is read with, as long as the function runs that it is given to.
type Reader struct {
	DB   *sql.DB
	View *View
}

// Read runs g, and again while somebody has the file locked. A file that has come in
// the place of the one that is open is not looked for, see Follow.
func (f *File) Read(ctx context.Context, g func(Reader) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	err := f.busy.retry(ctx, func() error { return g(Reader{DB: f.now.reader, View: f.now.view}) })
	if err != nil {
		return f.owner.Explain(err)
	}
	return nil
}

// Changes sends a value soon after any process committed. Values are coalesced. The
// channel is closed when ctx ends, and with the file.
func (f *File) Changes(ctx context.Context) <-chan struct{} { return f.notifier.listen(ctx) }

// Replaced reports whether another file, or none, is in the place of the one
// that is open: somebody has set that aside. Nobody would see what is written
// to it.
func (f *File) Replaced() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return !sameFile(f.path, f.now.identity)
}

// Follow opens the file that has replaced the one that was open, if one has.
func (f *File) Follow(ctx context.Context) error {
	if !f.Replaced() {
		return nil
	}
	if err := f.mayFollow(); err != nil {
		return err
	}
	release, err := f.queue.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return f.follow(ctx)
}

// follow is Follow for a caller who has the turn.
func (f *File) follow(ctx context.Context) error {
	if !f.Replaced() {
		return nil
	}
	if err := f.mayFollow(); err != nil {
		return err
	}
	next, err := f.connect(ctx)
	if err != nil {
		return f.owner.CannotFollow(f.owner.Explain(err))
	}
	f.use(next)
	return nil
}

func (f *File) mayFollow() error {
	if err := f.owner.MayFollow(); err != nil {
		return f.owner.CannotFollow(err)
	}
	return nil
}

// Close ends every channel of Changes, waits for the write in progress and closes
// everything.
func (f *File) Close() error {
	f.notifier.close()
	return errors.Join(f.queue.Close(), f.now.close())
}
