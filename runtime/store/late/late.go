// Package late is a store that may not be there yet. A project in which no thread
// has run has none, and looking at it must not make one: until the first thread is
// registered, or another process has made the store, there are no threads.
package late

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Store is a [store.Store]. It is safe for concurrent use.
type Store struct {
	find, create func(context.Context) (store.Store, error)

	mu     sync.Mutex
	opened store.Store   // nil: there is none yet
	here   chan struct{} // closed with the first of opened and closed
	closed bool

	messages
	deletions
	mending
	handoffs
	retries
	afterwards
	latest
	glancer
	census
	costs
	watching
}

var _ store.Store = (*Store)(nil)

// New returns a store that is opened by find, which returns nil while there is
// none, or made by create when the first thread is registered.
func New(find, create func(context.Context) (store.Store, error)) *Store {
	s := &Store{find: find, create: create, here: make(chan struct{})}
	s.messages = messages{s}
	s.deletions, s.mending, s.handoffs, s.latest = deletions{s}, mending{s}, handoffs{s}, latest{s}
	s.afterwards, s.glancer, s.census = afterwards{s}, glancer{s}, census{s}
	s.costs, s.retries, s.watching = costs{s}, retries{s}, watching{s}
	return s
}

var errClosed = errors.New("store is closed")

// Now returns the store; nil while there is none.
func (s *Store) Now(ctx context.Context) (store.Store, error) { return s.open(ctx, s.find) }

// Make makes a store where there is none, for callers that bring threads from elsewhere.
func Make(ctx context.Context, s *Store) error {
	_, err := s.open(ctx, s.create)
	return err
}

// IsOpen reports whether the store was there when it was last looked for.
func (s *Store) IsOpen() bool { return s.seen() != nil }

// seen is the store that was there when it was last looked for; nil: there was none.
func (s *Store) seen() store.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *Store) open(ctx context.Context, by func(context.Context) (store.Store, error)) (store.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.opened != nil:
		return s.opened, nil
	}
	opened, err := by(ctx)
	if err != nil || opened == nil {
		return nil, err
	}
	s.opened = opened
	close(s.here)
	return opened, nil
}

// Close closes the store if there is one.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.opened == nil {
		close(s.here)
		return nil
	}
	return s.opened.Close()
}

// ask asks the store, and returns absent while there is none.
func ask[T any](ctx context.Context, s *Store, absent error, f func(store.Store) (T, error)) (T, error) {
	var none T
	now, err := s.Now(ctx)
	if err != nil {
		return none, err
	}
	if now == nil {
		return none, absent
	}
	return f(now)
}

// tell is ask for what changes a thread that there must be.
func tell(ctx context.Context, s *Store, f func(store.Store) error) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if now == nil {
		return thread.ErrNotFound
	}
	return f(now)
}

// Candidate implements [store.Registry]; it makes the store, since a thread is about to
// be registered.
func (s *Store) Candidate(ctx context.Context, n store.NewThread) (store.Candidate, error) {
	now, err := s.open(ctx, s.create)
	if err != nil {
		return store.Candidate{}, err
	}
	return now.Candidate(ctx, n)
}

// Register implements [store.Registry]; it makes the store.
func (s *Store) Register(ctx context.Context, n store.NewThread) (rec thread.Record, created bool, err error) {
	now, err := s.open(ctx, s.create)
	if err != nil {
		return rec, false, err
	}
	return now.Register(ctx, n)
}

// List implements [store.Registry].
func (s *Store) List(ctx context.Context, f store.Filter) (rows []thread.Record, next string, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, "", err
	}
	if now != nil {
		return now.List(ctx, f)
	}
	if err = f.Check(); err == nil && f.Cursor != "" {
		err = store.ErrBadCursor // of another store
	}
	return nil, "", err
}

// Admit implements [store.Queue].
func (s *Store) Admit(
	ctx context.Context, id thread.ID, slots int, at time.Time, run thread.Run,
) (rec thread.Record, admitted bool, err error) {
	now, err := s.Now(ctx)
	if err != nil || now == nil {
		return rec, false, err
	}
	return now.Admit(ctx, id, slots, at, run)
}

// Next implements [store.Queue].
func (s *Store) Next(ctx context.Context, slots int, behind store.QueuePlace) (rec thread.Record, at store.QueuePlace, err error) {
	now, err := s.Now(ctx)
	if err != nil || now == nil {
		return rec, behind, err
	}
	return now.Next(ctx, slots, behind)
}

// Restore implements [store.Keeper].
func (s *Store) Restore(ctx context.Context, threads []store.Restored) (store.Restoration, error) {
	return ask(ctx, s, nil, func(now store.Store) (store.Restoration, error) { return now.Restore(ctx, threads) })
}

// Check implements [store.Keeper].
func (s *Store) Check(ctx context.Context) error {
	now, err := s.Now(ctx)
	if err != nil || now == nil {
		return err
	}
	return now.Check(ctx)
}

// Footprint implements [store.Keeper].
func (s *Store) Footprint(ctx context.Context) (store.Footprint, error) {
	return ask(ctx, s, nil, func(now store.Store) (store.Footprint, error) { return now.Footprint(ctx) })
}
