package sharedfile

import (
	"context"
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
)

// calm is the time between two looks where commits come one after another, and
// where they cannot be watched: too many programs of the user watch files already,
// or the file is not in its place. Finding out costs a microsecond, and waking a
// process for it a hundred times as much: some hundred that wait would be busy
// with nothing but the commits of each other.
const calm = 100 * time.Millisecond

// hasty is how many reports are passed on at once before they come at intervals
// of calm. A rest of calm makes up for one.
const hasty = 30

// watch looks for commits to one database, by any process.
type watch struct {
	f     *File
	poll  time.Duration
	files *fsnotify.Watcher // nil when the number of commits is polled
	count uint64            // of commits done, when it is polled
	seen  dataVersion       // at the last look
}

// newWatch never fails: what cannot be watched is polled, and what cannot be
// polled wakes the listeners, who meet the error when they look for themselves.
func newWatch(ctx context.Context, f *File, poll time.Duration) *watch {
	w := &watch{f: f, poll: poll}
	w.begin(ctx)
	return w
}

// begin takes the first look when the watch stands, so that no commit can come
// between them.
func (w *watch) begin(ctx context.Context) {
	if done := w.f.queue.commits.done; w.f.queue.commits.inPlace() {
		w.files, _ = watchFile(done.Name())
	}
	w.counted()
	w.changed(ctx)
}

func watchFile(path string) (*fsnotify.Watcher, error) {
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := files.Add(path); err != nil {
		return nil, errors.Join(err, files.Close())
	}
	return files, nil
}

// run calls tell after every commit until ctx ends.
func (w *watch) run(ctx context.Context, tell func()) {
	regular := time.NewTicker(w.poll)
	defer regular.Stop()
	if w.files != nil {
		w.listen(ctx, regular.C, tell)
		_ = w.files.Close() // it only read
	}
	w.goBlind(ctx, regular.C, tell)
}

// listen is told of commits by the operating system, until ctx ends or nothing
// is reported any more. Reports that come too fast are left to wait; the system
// makes one of them.
func (w *watch) listen(ctx context.Context, regular <-chan time.Time, tell func()) {
	var (
		passed pace
		rested <-chan time.Time
		events = w.files.Events
	)
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if !e.Has(fsnotify.Write) {
				continue
			}
			tell()
			if pause := passed.on(time.Now()); pause > 0 {
				events, rested = nil, time.After(pause)
			}
		case <-rested:
			events, rested = w.files.Events, nil
		case err := <-w.files.Errors:
			tell()
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return
			}
		case <-regular:
			if w.changed(ctx) {
				tell()
			}
			if !w.f.queue.commits.inPlace() {
				return
			}
		}
	}
}

// pace is when those that were let pass would all have done so at intervals of
// calm.
type pace time.Time

// on lets one pass, and returns how long the next has to wait.
func (p *pace) on(now time.Time) time.Duration {
	from := time.Time(*p)
	if from.Before(now) {
		from = now
	}
	from = from.Add(calm)
	*p = pace(from)
	return from.Sub(now) - (hasty-1)*calm
}

// goBlind reads the number of commits again and again until ctx ends, or asks
// SQLite where others count in another file.
func (w *watch) goBlind(ctx context.Context, regular <-chan time.Time, tell func()) {
	often := time.NewTicker(min(w.poll, calm))
	defer often.Stop()
	for {
		var news bool
		select {
		case <-ctx.Done():
			return
		case <-often.C:
			if w.f.queue.commits.inPlace() {
				news = w.counted()
			} else {
				news = w.changed(ctx)
			}
		case <-regular:
			news = w.changed(ctx)
		}
		if news {
			tell()
		}
	}
}

// counted reports whether commits have been done since the last call.
func (w *watch) counted() bool {
	done, _ := readNumber(w.f.queue.commits.done)
	counted := done != w.count
	w.count = done
	return counted
}

// changed asks SQLite whether somebody has committed since the last call, or the
// file is another one. When that cannot be known the answer is yes.
func (w *watch) changed(ctx context.Context) bool {
	var now dataVersion
	err := w.f.Read(ctx, func(r Reader) (err error) {
		now, err = r.View.version(ctx)
		return err
	})
	changed := err != nil || now != w.seen || w.f.Replaced()
	w.seen = now
	return changed && ctx.Err() == nil
}
