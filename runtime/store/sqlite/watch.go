package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Who commits in the queue touches the file of its lock afterwards, so that the
// first look after the report finds the commit. Of others only the write-ahead
// log tells, and its report comes early: the log is flushed first, and only then
// the shared index moves. So one report is followed by several looks, at doubling
// intervals from firstLook until lastLook is reached, 64 ms in all. They go on
// after a change was seen: reports are merged by the operating system, and the
// one just taken may stand for a second commit that is still being flushed. A
// disk that takes longer to flush is left to the regular poll.
const (
	firstLook = 250 * time.Microsecond
	lastLook  = 32 * time.Millisecond
)

// blindPoll is the interval of looks when the files cannot be watched (too many
// watches on the system, or the log was removed from outside).
const blindPoll = 20 * time.Millisecond

// watch looks for commits to one database, by any connection but its own.
type watch struct {
	path     string
	poll     time.Duration
	db       *sql.DB
	identity os.FileInfo       // the file that db has open
	files    *fsnotify.Watcher // nil when what is reported cannot be watched
	version  int64             // PRAGMA data_version at the last look
}

// newWatch never fails: what cannot be watched is polled, and what cannot be
// polled wakes the listeners, who meet the error when they look for themselves.
func newWatch(ctx context.Context, path string, poll time.Duration) *watch {
	w := &watch{path: path, poll: poll}
	w.begin(ctx)
	return w
}

// begin opens what is watched and takes the first look.
func (w *watch) begin(ctx context.Context) {
	w.identity, _ = os.Stat(w.path) // without one, there is a reason to begin again
	// The connection is the watch's own, since data_version counts by connection.
	if db, err := openPool(w.path, 1, "query_only(1)"); err == nil {
		w.db = db
	}
	w.changed(ctx) // which also opens the log, so that it exists
	dir, file := filepath.Split(w.path)
	// Writers of this package poke their queue when a commit is visible; the log
	// tells of others, before it is.
	w.files, _ = watchFiles(lockPath(dir, names[file]), w.path+"-wal")
}

// pace is the time between two looks that nothing gave a reason for.
func (w *watch) pace() time.Duration {
	if w.files == nil || w.db == nil || w.identity == nil {
		return min(w.poll, blindPoll)
	}
	return w.poll
}

func watchFiles(paths ...string) (*fsnotify.Watcher, error) {
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := files.Add(path); err != nil {
			_ = files.Close()
			return nil, err
		}
	}
	return files, nil
}

// run calls tell after every commit until ctx ends. When another file comes in
// the place of the one that is watched, it goes on with that.
func (w *watch) run(ctx context.Context, tell func()) {
	for {
		var events <-chan fsnotify.Event
		var lost <-chan error
		if w.files != nil {
			events, lost = w.files.Events, w.files.Errors
		}
		w.look(ctx, w.pace(), events, lost, tell)
		w.close()
		if ctx.Err() != nil {
			return
		}
		w.begin(ctx)
		tell()
	}
}

// look looks when the system reports something, shortly after that, and
// regularly, until ctx ends or the file is another.
func (w *watch) look(ctx context.Context, pace time.Duration, events <-chan fsnotify.Event, lost <-chan error, tell func()) {
	regular := time.NewTicker(pace)
	defer regular.Stop()
	pause := firstLook
	again := time.NewTimer(pause) // for what was committed before the log was watched
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				regular.Reset(min(pace, blindPoll))
			}
			pause = firstLook
			again.Reset(pause)
		case err := <-lost: // most likely the system's queue of events ran over
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				regular.Reset(min(pace, blindPoll))
			}
			pause = firstLook
			again.Reset(pause)
		case <-again.C:
			if pause *= 2; pause <= lastLook {
				again.Reset(pause)
			}
		case <-regular.C:
			if !sameFile(w.path, w.identity) {
				return
			}
		}
		if w.changed(ctx) {
			tell()
		}
	}
}

// changed looks whether somebody committed since the last look. When it cannot
// be known the answer is yes.
func (w *watch) changed(ctx context.Context) bool {
	if w.db == nil {
		return true
	}
	var version int64
	if err := w.db.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
		return ctx.Err() == nil
	}
	changed := version != w.version
	w.version = version
	return changed
}

func (w *watch) close() {
	if w.files != nil {
		_ = w.files.Close()
		w.files = nil
	}
	if w.db != nil {
		_ = w.db.Close() // it only read
		w.db = nil
	}
}
