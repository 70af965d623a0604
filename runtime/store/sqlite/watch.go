package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
)

// After the write-ahead log was written to, the commit becomes visible to
// others a moment later: the log is flushed first, and only then the shared
// index moves. So one report is followed by several looks, at doubling
// intervals from firstLook until lastLook is reached, 64 ms in all. They go on
// after a change was seen: reports are merged by the operating system, and the
// one just taken may stand for a second commit that is still being flushed. A
// disk that takes longer to flush is left to the regular poll.
const (
	firstLook = 250 * time.Microsecond
	lastLook  = 32 * time.Millisecond
)

// blindPoll is the interval of looks when the file cannot be watched (too many
// watches on the system, or the log was removed from outside).
const blindPoll = 20 * time.Millisecond

// watch looks for commits to one database, by any connection but its own.
type watch struct {
	db      *sql.DB
	poll    time.Duration
	files   *fsnotify.Watcher // nil when the log cannot be watched
	version int64             // PRAGMA data_version at the last look
}

// newWatch never fails: what cannot be watched is polled, and what cannot be
// polled wakes the listeners, who meet the error when they look for themselves.
func newWatch(ctx context.Context, path string, poll time.Duration) *watch {
	w := &watch{poll: poll}
	// The connection is the watch's own, since data_version counts by connection.
	// While it is open nobody removes the log.
	db, err := openPool(path, 1, "query_only(1)")
	if err != nil {
		w.poll = min(poll, blindPoll)
		return w
	}
	w.db = db
	w.changed(ctx) // the first look, which also opens the log
	if w.files, err = watchFile(path + "-wal"); err != nil {
		w.poll = min(poll, blindPoll)
	}
	return w
}

func watchFile(path string) (*fsnotify.Watcher, error) {
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := files.Add(path); err != nil {
		_ = files.Close()
		return nil, err
	}
	return files, nil
}

// run calls tell after every commit until ctx ends.
func (w *watch) run(ctx context.Context, tell func()) {
	defer w.close()
	if w.files == nil {
		w.look(ctx, nil, nil, tell)
		return
	}
	w.look(ctx, w.files.Events, w.files.Errors, tell)
}

// look looks when the system reports something, shortly after that, and
// regularly.
func (w *watch) look(ctx context.Context, events <-chan fsnotify.Event, lost <-chan error, tell func()) {
	regular := time.NewTicker(w.poll)
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
				regular.Reset(min(w.poll, blindPoll))
			}
			pause = firstLook
			again.Reset(pause)
		case err := <-lost: // most likely the system's queue of events ran over
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				regular.Reset(min(w.poll, blindPoll))
			}
			pause = firstLook
			again.Reset(pause)
		case <-again.C:
			if pause *= 2; pause <= lastLook {
				again.Reset(pause)
			}
		case <-regular.C:
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
	}
	if w.db != nil {
		_ = w.db.Close() // it only read
	}
}
