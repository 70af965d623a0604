package sqlite

import (
	"context"
	"errors"
	"time"

	lib "modernc.org/sqlite/lib"
)

// busyTimeout is how long one statement waits inside SQLite, in milliseconds.
// It is short because a statement that waits there does not notice its context;
// the rest of the wait is retryBusy.
const busyTimeout = 100

// pauses between attempts of retryBusy, after the wait inside SQLite.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// retryBusy repeats f until the database is not locked by somebody who does not
// stand in the queue: a process recovering or deleting the write-ahead log, or
// a person with a shell. It gives up when ctx ends.
func retryBusy(ctx context.Context, f func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := f()
		if !isBusy(err) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// isBusy reports whether err is SQLITE_BUSY or one of its extended codes.
func isBusy(err error) bool {
	code, ok := primaryCode(err)
	return ok && code == lib.SQLITE_BUSY
}
