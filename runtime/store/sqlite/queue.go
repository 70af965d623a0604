package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// queue is the line in which writers of one database file wait, across
// goroutines and processes. SQLite has no line: its busy handler sleeps and
// tries again, and whoever sleeps longest loses. Here the waiting is done in
// the kernel, on an advisory lock of a file beside the database, which is
// released with the process that held it.
//
// A wait in flock cannot be interrupted, but a caller's context can end. So the
// wait is done by a helper goroutine, at most one a queue: a caller who gives
// up leaves it waiting, the next caller takes it over, and when the lock comes
// while nobody wants it the helper lets go of it and ends.
type queue struct {
	path string
	slot chan struct{} // holds a token while a caller waits for or has the lock

	tally tally // in the files of lock

	mu     sync.Mutex
	lock   turnstile
	helper *helper // the wait in progress, if any
	closed bool
}

// helper is one wait in the kernel.
type helper struct {
	done   chan error // gets the outcome when somebody wants it
	wanted bool
}

var errClosed = errors.New("store is closed")

func openQueue(path string) (*queue, error) {
	lock, err := openTurnstile(path)
	if err != nil {
		return nil, err
	}
	return &queue{path: path, slot: make(chan struct{}, 1), tally: tally{begun: lock.gate, done: lock.turn}, lock: lock}, nil
}

// acquire waits for its turn. The function it returns gives the turn back and
// must be called exactly once.
func (q *queue) acquire(ctx context.Context) (release func(), err error) {
	select {
	case q.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for %s: %w", q.path, context.Cause(ctx))
	}
	if err := q.enter(ctx); err != nil {
		<-q.slot
		return nil, fmt.Errorf("waiting for %s: %w", q.path, err)
	}
	return q.release, nil
}

func (q *queue) release() {
	q.lock.release()
	<-q.slot
}

// enter gets the lock for the caller, who has the slot.
func (q *queue) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	h, err := q.join()
	if h == nil {
		return err
	}
	select {
	case err := <-h.done:
		return err
	case <-ctx.Done():
		return q.abandon(ctx, h)
	}
}

// join takes the lock at once when it is free (no helper is returned then), or
// returns the helper that waits for it.
func (q *queue) join() (*helper, error) {
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
func (q *queue) abandon(ctx context.Context, h *helper) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.helper == h {
		h.wanted = false
		return context.Cause(ctx)
	}
	return <-h.done // buffered, and sent before q.helper was cleared
}

// wait is the helper's goroutine.
func (q *queue) wait(h *helper) {
	err := q.lock.wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.helper = nil
	switch {
	case h.wanted:
		h.done <- err
	case q.closed:
		_ = q.lock.close() // releases it
	case err == nil:
		q.lock.release()
	}
}

// close waits for the turn in progress and refuses later ones. A helper still
// waiting for another process closes the file when that process lets go.
func (q *queue) close() error {
	q.slot <- struct{}{}
	defer func() { <-q.slot }()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	if q.helper != nil {
		return nil
	}
	return q.lock.close()
}
