package loop

import "time"

// stopwatch measures how long a thread has worked. It stands still while the
// thread waits to be told what to do.
type stopwatch struct {
	worked time.Duration // before it was started last
	since  time.Time     // when that was; zero while it stands still
}

func startedWatch() stopwatch { return stopwatch{since: time.Now()} }

func (w *stopwatch) elapsed() time.Duration {
	if w.since.IsZero() {
		return w.worked
	}
	return w.worked + time.Since(w.since)
}

func (w *stopwatch) stop() { w.worked, w.since = w.elapsed(), time.Time{} }

func (w *stopwatch) start() { w.since = time.Now() }
