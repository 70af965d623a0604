package sqlite

import (
	"context"
	"errors"
	"time"

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

// retry repeats f until the database is not locked by somebody who does not
// stand in the queue: a process recovering or deleting the write-ahead log, or
// a person with a shell. It gives up when ctx ends, and with a *thread.BusyError
// when the other does not let go.
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
	code, ok := primaryCode(err)
	return ok && code == lib.SQLITE_BUSY
}
