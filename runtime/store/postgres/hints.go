package postgres

import (
	"context"
	"sync"
	"time"
)

// hinter tells others that something was committed, after it was: NOTIFY in a
// transaction would make all commits of the database wait for each other. Commits that come
// while one hint is on its way share the next.
type hinter struct {
	store *Store

	mu      sync.Mutex
	due     bool
	working bool
	closed  bool
	idle    sync.Cond // nobody works
}

func newHinter(s *Store) *hinter {
	h := &hinter{store: s}
	h.idle.L = &h.mu
	return h
}

// hint asks for a hint. It does not wait.
func (h *hinter) hint() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = true
	if !h.working && !h.closed {
		h.working = true
		go h.work()
	}
}

// work sends hints as long as they are due.
func (h *hinter) work() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.due {
		h.due = false
		h.mu.Unlock()
		h.send()
		h.mu.Lock()
	}
	h.working = false
	h.idle.Broadcast()
}

// hintTimeout is how long a hint may take. Those who listen look by themselves, too.
const hintTimeout = 2 * time.Second

func (h *hinter) send() {
	ctx, cancel := context.WithTimeout(context.Background(), hintTimeout)
	defer cancel()
	// What fails is found by the look each second.
	_, _ = h.store.pool.Exec(ctx, "SELECT pg_notify($1, '')", h.store.schema)
}

// close waits until the last hint is sent. There are no further ones.
func (h *hinter) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for h.working {
		h.idle.Wait()
	}
}
