// Package announce notices at the store of a project that a person wants to be notified
// of something: that a thread has ended, that it asks, and that 80 % of the limit of a
// root are spent. The change itself puts the notice into the store; here the process
// that has made the change starts a sender for it.
package announce

import (
	"context"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Store is a store whose changes are announced.
type Store struct {
	store.Store
	// Wants reports whether the person wants to be notified of something. It is asked
	// after each such change, and must be quick.
	Wants func(thread.NewsKind) bool
	// Send starts a sender, and does not wait for it.
	Send func()
	Now  func() time.Time
	// Failed is told why a budget could not be looked at; the thread goes on.
	Failed func(error)
	// Traces follow the ends of threads; nil: nobody does.
	Traces Traces
	// Mirror follows each change of a thread that a copy of it would show; nil: nobody does.
	Mirror Mirror

	mu    sync.Mutex
	noted map[thread.ID]bool // roots whose budget was noted
}

// Traces is told of the end of a thread before the row says it, so that no crash comes
// between, and after.
type Traces interface {
	Ending(thread.ID)
	Ended()
}

// Mirror is told of a change of a thread before it is made, so that no crash comes between,
// and after: what it noted before can have been sent before the change. It is told before a
// change that fails, too.
type Mirror interface {
	Changing(thread.ID)
	Changed(thread.ID)
}

// Register implements [store.Registry].
func (s *Store) Register(ctx context.Context, n store.NewThread) (thread.Record, bool, error) {
	if s.Mirror == nil {
		return s.Store.Register(ctx, n)
	}
	s.Mirror.Changing(n.ID)
	rec, created, err := s.Store.Register(ctx, n)
	if created {
		s.Mirror.Changed(rec.ThreadID)
	}
	return rec, created, err
}

// Link implements [store.Registry].
func (s *Store) Link(ctx context.Context, id, successor thread.ID, at time.Time) error {
	if s.Mirror == nil {
		return s.Store.Link(ctx, id, successor, at)
	}
	s.Mirror.Changing(id)
	err := s.Store.Link(ctx, id, successor, at)
	if err == nil {
		s.Mirror.Changed(id)
	}
	return err
}

// Label implements [store.Labels].
func (s *Store) Label(ctx context.Context, id thread.ID, l store.LabelChange, at time.Time) (thread.Record, error) {
	if s.Mirror == nil {
		return s.Store.Label(ctx, id, l, at)
	}
	s.Mirror.Changing(id)
	rec, err := s.Store.Label(ctx, id, l, at)
	if err == nil {
		s.Mirror.Changed(id)
	}
	return rec, err
}

// Runner implements [store.Registry].
func (s *Store) Runner(id thread.ID, run thread.Run) store.Runner {
	return &runner{s.Store.Runner(id, run), s, id}
}

type runner struct {
	store.Runner
	store *Store
	id    thread.ID
}

// Apply implements [store.Runner].
func (r *runner) Apply(ctx context.Context, c store.Change) (thread.Record, error) {
	ends := c.Outcome() != nil
	if r.store.Mirror != nil {
		r.store.Mirror.Changing(r.id)
	}
	if ends && r.store.Traces != nil {
		r.store.Traces.Ending(r.id)
	}
	rec, err := r.Runner.Apply(ctx, c)
	if err == nil && r.store.Mirror != nil {
		r.store.Mirror.Changed(r.id)
	}
	if err != nil || !ends {
		return rec, err
	}
	if c.To() != thread.Continued {
		r.store.announce(thread.Ended)
	}
	if r.store.Traces != nil {
		r.store.Traces.Ended()
	}
	return rec, nil
}

// DropRetry implements [store.Retries]: what is not tried again has ended.
func (s *Store) DropRetry(ctx context.Context, id thread.ID, why string, at time.Time) (bool, error) {
	dropped, err := s.Store.DropRetry(ctx, id, why, at)
	if dropped {
		s.announce(thread.Ended)
	}
	return dropped, err
}

// Ask implements [store.Runner].
func (r *runner) Ask(ctx context.Context, q thread.Question) error {
	err := r.Runner.Ask(ctx, q)
	if err == nil {
		r.store.announce(thread.Asked)
	}
	return err
}

// Report implements [store.Runner].
func (r *runner) Report(ctx context.Context, ownTotal thread.Micros, at time.Time) error {
	err := r.Runner.Report(ctx, ownTotal, at)
	if err == nil && r.store.Wants(thread.Budget80) {
		if err := r.store.noteBudget(ctx, r.id); err != nil && ctx.Err() == nil {
			r.store.Failed(err)
		}
	}
	return err
}

func (s *Store) announce(kind thread.NewsKind) {
	if s.Wants(kind) {
		s.Send()
	}
}

// noteBudget makes it news, once, that the tree of a thread has spent 80 % of what its
// root may.
func (s *Store) noteBudget(ctx context.Context, id thread.ID) error {
	root, err := s.rootOf(ctx, id)
	if err != nil || s.isNoted(root) {
		return err
	}
	budget, tree, err := s.Tree(ctx, root)
	if err != nil || budget.MaxSpend <= 0 || tree.Actual < budget.MaxSpend/5*4 {
		return err
	}
	first, err := s.NoteBudget(ctx, root, s.Now())
	if err != nil {
		return err
	}
	s.note(root)
	if first {
		s.Send()
	}
	return nil
}

func (s *Store) rootOf(ctx context.Context, id thread.ID) (thread.ID, error) {
	for {
		rec, err := s.Get(ctx, id)
		if err != nil || rec.ParentID == "" {
			return id, err
		}
		id = rec.ParentID
	}
}

func (s *Store) isNoted(root thread.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noted[root]
}

func (s *Store) note(root thread.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noted == nil {
		s.noted = map[thread.ID]bool{}
	}
	s.noted[root] = true
}
