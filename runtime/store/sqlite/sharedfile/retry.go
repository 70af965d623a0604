package sharedfile

import (
	"context"
	"errors"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// busyTimeout is how long one statement waits inside SQLite, in milliseconds.
// It is short because a statement that waits there does not notice its context;
// the rest of the wait is waiting.retry.
const busyTimeout = 100

// pauses between attempts of waiting.retry, after the wait inside SQLite.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Retry repeats f as long as somebody has the database locked who does not stand in
// the queue, with the patience of the queue.
func (q *Queue) Retry(ctx context.Context, f func() error) error { return q.retry(ctx, f) }

// retry repeats f until the database is not locked by somebody who does not
// stand in the queue: a process recovering or deleting the write-ahead log, or
// a person with a shell. It gives up when ctx ends, and with the error of
// Options.Busy when the other does not let go.
func (w *waiting) retry(ctx context.Context, f func() error) error {
	err := f()
	if !isBusy(err) {
		return err
	}
	wait := w.newStall(time.Now())
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if !isBusy(err) {
			return err
		}
		if over := wait.over(time.Now()); over != nil {
			return errors.Join(over, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), err)
		}
		err = f()
	}
}

// isBusy reports whether err is SQLITE_BUSY or one of its extended codes.
func isBusy(err error) bool {
	code, ok := Code(err)
	return ok && code == lib.SQLITE_BUSY
}

// Code is the code of an error of SQLite without its extension.
func Code(err error) (code int, ok bool) {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return 0, false
	}
	return e.Code() & 0xff, true
}
