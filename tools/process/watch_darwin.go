package process

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// wakeIdent names the event that ends a wait early, within its own queue.
const wakeIdent = 1

// watcher opens a kqueue that tells when the process ends (kqueue(2), EVFILT_PROC
// with NOTE_EXIT), and returns the wait for it. Go's poller does not take these
// events, so a wait holds a thread of the system.
func watcher(pid int) func(context.Context) bool {
	queue, err := openQueue(pid)
	if err != nil { // no descriptor left, or gone by now
		return func(ctx context.Context) bool { return poll(ctx, pid) }
	}
	return func(ctx context.Context) bool {
		defer func() { _ = unix.Close(queue) }()
		if Gone(pid) { // it ended before the queue knew of it
			return true
		}
		woken := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(woken)
			wake(queue)
		})
		ended, err := waitQueue(queue)
		if !stop() {
			<-woken // nobody may still write to the number of a closed queue
		}
		if err != nil && ctx.Err() == nil {
			return poll(ctx, pid)
		}
		return ended
	}
}

// openQueue is a queue with the end of the process and the event of wake.
func openQueue(pid int) (int, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(queue)
	events := make([]unix.Kevent_t, 2)
	unix.SetKevent(&events[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	events[0].Fflags = unix.NOTE_EXIT
	unix.SetKevent(&events[1], wakeIdent, unix.EVFILT_USER, unix.EV_ADD|unix.EV_CLEAR)
	if _, err := unix.Kevent(queue, events, nil, nil); err != nil {
		_ = unix.Close(queue)
		return -1, err
	}
	return queue, nil
}

// wake ends the wait on a queue.
func wake(queue int) {
	event := make([]unix.Kevent_t, 1)
	unix.SetKevent(&event[0], wakeIdent, unix.EVFILT_USER, 0)
	event[0].Fflags = unix.NOTE_TRIGGER
	_, _ = unix.Kevent(queue, event, nil, nil) // fails with a closed queue, on which nobody waits
}

// waitQueue waits for an event and tells whether it is the end of the process.
func waitQueue(queue int) (ended bool, err error) {
	for {
		event := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(queue, nil, event, nil)
		if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
			continue
		}
		return err == nil && event[0].Filter == unix.EVFILT_PROC, err
	}
}
