package sharedfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Queue is where the writers of one database file wait, across
// goroutines and processes. SQLite has no queue: its busy handler sleeps and
// tries again, and whoever sleeps longest loses. Here the waiting is done in
// the kernel, on an advisory lock of a file beside the database, which is
// released with the process that held it.
//
// A wait in flock cannot be interrupted, but a caller's context can end, and its
// patience with a process that holds the lock and does not go on. So the
// wait is done by a helper goroutine, at most one a queue: a caller who gives
// up leaves it waiting, the next caller takes it over, and when the lock comes
// while nobody wants it the helper lets go of it and ends.
type Queue struct {
	slot   chan struct{} // holds a token while a caller waits for or has the lock
	record []byte        // of the process that has the turn, for others; nil says nothing

	waiting

	mu     sync.Mutex
	lock   fairLock
	helper *helper // the wait in progress, if any
	beside *os.File
	stuck  stall // of the last wait that was in vain; it goes on for the next caller
	closed bool
}

// helper is one wait in the kernel.
type helper struct {
	done   chan error // gets the outcome when somebody wants it
	wanted bool
}

var errClosed = errors.New("store is closed")

// OpenQueue opens the queue whose turn is the lock of the file at path, which is
// made for its owner only where it is missing. Of the options Poll is not read.
func OpenQueue(path string, opts Options) (*Queue, error) {
	lock, err := openFairLock(path)
	if err != nil {
		return nil, err
	}
	return &Queue{
		slot: make(chan struct{}, 1), lock: lock, record: padded(opts.Record),
		waiting: waiting{
			path: path, files: []string{path, path + gateEnding}, commits: commitCounter{begun: lock.gate, done: lock.turn},
			patience: opts.Patience.or(defaultPatience()), busy: opts.Busy,
		},
	}, nil
}

// Acquire waits for its turn. The function it returns gives the turn back and
// must be called exactly once. The error is that of Options.Busy when somebody
// has the turn and does not go on.
func (q *Queue) Acquire(ctx context.Context) (release func(), err error) {
	w := turnWait{Queue: q, ctx: ctx}
	defer w.end()
	if err := w.awaitSlot(); err != nil {
		return nil, fmt.Errorf("waiting for %s: %w", q.path, err)
	}
	leave, err := w.awaitLock()
	if err != nil {
		<-q.slot
		return nil, fmt.Errorf("waiting for %s: %w", q.path, err)
	}
	w.goesOn()
	if q.record != nil {
		_, _ = q.lock.gate.WriteAt(q.record, recordAt) // waiters can do without it
	}
	return func() {
		leave()
		<-q.slot
	}, nil
}

// turnWait is the wait of one caller.
type turnWait struct {
	*Queue
	ctx   context.Context //nolint:containedctx // lives exactly as long as the wait it bounds
	looks *time.Ticker    // nil until there is something to wait for
	stall stall
}

// look is when to look whether others go on.
func (w *turnWait) look() <-chan time.Time {
	if w.looks == nil {
		w.looks = time.NewTicker(w.patience.every())
		w.stall = w.resumeStall(time.Now())
	}
	return w.looks.C
}

// resumeStall goes on with the wait of a caller who gave up, when nothing has been
// committed since: nobody waits a second time for the same process.
func (q *Queue) resumeStall(now time.Time) stall {
	q.mu.Lock()
	defer q.mu.Unlock()
	fresh := q.newStall(now)
	if q.stuck.waiting != nil && q.stuck.done == fresh.done {
		return q.stuck
	}
	return fresh
}

// over is stall.over, remembered for the next caller.
func (w *turnWait) over() error {
	err := w.stall.over(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = stall{}
	if err != nil {
		w.stuck = w.stall
	}
	return err
}

// goesOn forgets a wait in vain: who has the turn next is another.
func (q *Queue) goesOn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stuck = stall{}
}

func (w *turnWait) end() {
	if w.looks != nil {
		w.looks.Stop()
	}
}

func (w *turnWait) awaitSlot() error {
	select {
	case w.slot <- struct{}{}:
		return nil
	default:
	}
	for {
		select {
		case w.slot <- struct{}{}:
			return nil
		case <-w.look():
			if err := w.over(); err != nil {
				return err
			}
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
}

// awaitLock gets the lock for the caller, who has the slot.
func (w *turnWait) awaitLock() (leave func(), err error) {
	if w.ctx.Err() != nil {
		return nil, context.Cause(w.ctx)
	}
	h, err := w.join()
	if h == nil {
		return w.lock.release, err
	}
	for {
		select {
		case err := <-h.done:
			return w.lock.release, err
		case <-w.look():
			if leave, ok := w.passGate(h); ok {
				return leave, nil
			}
			if err := w.over(); err != nil {
				return w.abandon(h, err)
			}
		case <-w.ctx.Done():
			return w.abandon(h, context.Cause(w.ctx))
		}
	}
}

// passGate takes a turn that is free although somebody has the gate: one who was
// suspended while it waited there. The gate gives turns an order, and the turn
// alone keeps writers apart. It is taken through another opening of the file, so
// that the helper, who has the first, does not take it for its own.
func (w *turnWait) passGate(h *helper) (leave func(), ok bool) {
	if time.Since(w.stall.since) < w.patience.every() {
		return nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.helper != h { // the turn has just come
		return nil, false
	}
	if w.beside == nil {
		f, err := openLockFile(w.path)
		if err != nil {
			return nil, false
		}
		w.beside = f
	}
	if got, err := tryLock(w.beside); !got || err != nil {
		return nil, false
	}
	h.wanted = false
	return func() { w.lock.leave(w.beside) }, true
}

// join takes the lock at once when it is free (no helper is returned then), or
// returns the helper that waits for it.
func (q *Queue) join() (*helper, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, errClosed
	}
	if q.helper != nil {
		q.helper.wanted = true
		return q.helper, nil
	}
	if got, err := q.lock.try(); got || err != nil {
		return nil, err
	}
	q.helper = &helper{done: make(chan error, 1), wanted: true}
	go q.wait(q.helper)
	return q.helper, nil
}

// abandon leaves the helper to the next caller, unless the lock has just come.
func (q *Queue) abandon(h *helper, why error) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.helper == h {
		h.wanted = false
		return nil, why
	}
	return q.lock.release, <-h.done // buffered, and sent before q.helper was cleared
}

// wait is the helper's goroutine.
func (q *Queue) wait(h *helper) {
	err := q.lock.wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.helper = nil
	if err == nil {
		q.stuck = stall{} // the holder has let go, whether or not anybody wants the turn
	}
	switch {
	case h.wanted:
		h.done <- err
	case q.closed:
		_ = q.lock.close() // releases it
	case err == nil:
		q.lock.release()
	}
}

// Close waits for the turn in progress and refuses later ones. A helper still
// waiting for another process closes the file when that process lets go.
func (q *Queue) Close() error {
	q.slot <- struct{}{}
	defer func() { <-q.slot }()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	var err error
	if q.beside != nil {
		err = q.beside.Close()
	}
	if q.helper != nil {
		return err
	}
	return errors.Join(err, q.lock.close())
}
