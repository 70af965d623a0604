package daily

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Store is the store of a project whose roots are kept in the book. It enters money
// before the ledger gives it, and brings the book up to the ledger afterwards, so
// that a crash in between leaves too much in the book and never too little.
type Store struct {
	store.Store
	Book    *Book
	Project string
	// Limit is limits.daily_spend of the user; nil: there is none. A call that has read
	// the settings brings it along, see Under.
	Limit func() (*thread.Micros, error)
	// Settled looks after the open roots before another is refused: they may be dead,
	// in any project. It may be nil.
	Settled func(ctx context.Context, open []Entry) error
}

// OpenRoot implements [store.Ledger].
func (s *Store) OpenRoot(ctx context.Context, id thread.ID, most thread.Micros, at time.Time) error {
	if err := s.enter(ctx, id, most); err != nil {
		return err
	}
	return s.Store.OpenRoot(ctx, id, most, at)
}

// Runner implements [store.Registry].
func (s *Store) Runner(id thread.ID, run thread.Run) store.Runner {
	return &runner{s.Store.Runner(id, run), s, id}
}

// runner keeps to the book with what it raises and settles.
type runner struct {
	store.Runner
	store *Store
	id    thread.ID
}

// Raise implements [store.Runner].
func (r *runner) Raise(ctx context.Context, to thread.Micros, at time.Time) error {
	s, id := r.store, r.id
	row, err := s.Budget(ctx, id)
	if err != nil {
		return err
	}
	if row.ParentID != "" || to <= row.MaxSpend {
		return r.Runner.Raise(ctx, to, at)
	}
	x, err := s.Exposure(ctx, id)
	if err != nil {
		return err
	}
	if err := s.enter(ctx, x.Root, x.Most.Plus(to-row.MaxSpend)); err != nil {
		return err
	}
	err = r.Runner.Raise(ctx, to, at)
	s.update(ctx, id)
	return err
}

// ReserveAfter implements [store.Ledger]. The root may have been settled, and its
// money of today be others' by now: the child has then nothing.
func (s *Store) ReserveAfter(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error {
	if err := s.Store.ReserveAfter(ctx, child, parent, amount, at); err != nil {
		return err
	}
	x, err := s.Exposure(ctx, child)
	if err == nil {
		err = s.enter(ctx, x.Root, x.Most)
	}
	if err != nil {
		err = errors.Join(err, s.giveUp(ctx, child, at))
	}
	s.update(ctx, child)
	return err
}

// SpendAfter implements [store.Afterwards]. The money was entered for the root before it
// began; where that has ended it may be others' by now.
func (s *Store) SpendAfter(ctx context.Context, id thread.ID, amount thread.Micros, at time.Time) error {
	x, err := s.Exposure(ctx, id)
	if err != nil {
		return err
	}
	if amount > 0 && !x.Open {
		if err := s.enter(ctx, x.Root, x.Most.Plus(amount)); err != nil {
			return err
		}
	}
	err = s.Store.SpendAfter(ctx, id, amount, at)
	s.update(ctx, id)
	return err
}

// giveUp settles the budget of a thread that does not begin.
func (s *Store) giveUp(ctx context.Context, id thread.ID, at time.Time) error {
	rec, err := s.Get(ctx, id)
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return err
	}
	return s.Store.Runner(id, rec.Run).Settle(ctx, at)
}

// Settle implements [store.Runner].
func (r *runner) Settle(ctx context.Context, at time.Time) error {
	s, id := r.store, r.id
	if err := r.Runner.Settle(ctx, at); err != nil || !s.Book.made() {
		return err
	}
	if _, err := s.Exposure(ctx, id); errors.Is(err, store.ErrNoBudget) { // it died between the book and the ledger
		return s.Book.Remove(ctx, Entry{Project: s.Project, ThreadID: id})
	}
	if rec, err := s.Get(ctx, id); err == nil && !rec.Status.Terminal() {
		return nil // its end says whether it is tried again, see Apply
	}
	s.update(ctx, id)
	return nil
}

// Apply implements [store.Runner].
func (r *runner) Apply(ctx context.Context, c store.Change) (thread.Record, error) {
	rec, err := r.Runner.Apply(ctx, c)
	if err == nil && c.Outcome() != nil {
		r.store.update(ctx, r.id)
	}
	return rec, err
}

// DropRetry implements [store.Retries].
func (s *Store) DropRetry(ctx context.Context, id thread.ID, why string, at time.Time) (bool, error) {
	dropped, err := s.Store.DropRetry(ctx, id, why, at)
	if dropped {
		s.update(ctx, id)
	}
	return dropped, err
}

type limitKey struct{}

// Under is a context for what a call with these settings gives roots: they are not
// read again for the limit of the day.
func Under(ctx context.Context, settings Settings) context.Context {
	return context.WithValue(ctx, limitKey{}, func() (*thread.Micros, error) { return LimitOf(settings) })
}

// Settings are those of one version.
type Settings interface {
	Resilience() (config.Resilience, []string, error)
}

// LimitOf is limits.daily_spend of the user; nil: there is none.
func LimitOf(s Settings) (*thread.Micros, error) {
	set, _, err := s.Resilience()
	if err != nil || set.DailySpend == nil {
		return nil, err
	}
	limit, err := thread.Dollars(*set.DailySpend)
	return &limit, err
}

// enter enters a root, or more for one that is there. When that does not fit, those
// that are dead are settled first.
func (s *Store) enter(ctx context.Context, root thread.ID, amount thread.Micros) error {
	read, known := ctx.Value(limitKey{}).(func() (*thread.Micros, error))
	if !known {
		read = s.Limit
	}
	limit, err := read()
	if err != nil || limit == nil {
		return err
	}
	first, err := s.entryOf(ctx, root)
	if err != nil {
		return err
	}
	if first != root {
		others, _, err := s.sum(ctx, first, root)
		if err != nil {
			return err
		}
		amount = amount.Plus(others.Most)
	}
	entry := Entry{Project: s.Project, ThreadID: first}
	err = s.Book.Enter(ctx, entry, amount, *limit)
	if short := new(ExceededError); s.Settled == nil || !errors.As(err, &short) {
		return err
	}
	open, listErr := s.Book.Open(ctx)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	if settleErr := s.Settled(ctx, open); settleErr != nil {
		return errors.Join(err, settleErr)
	}
	return s.Book.Enter(ctx, entry, amount, *limit)
}

// update brings the book up to the ledger. A failure leaves the root with more than
// it can come to, until it is looked at again.
func (s *Store) update(ctx context.Context, id thread.ID) {
	if !s.Book.made() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	x, err := s.Exposure(ctx, id)
	if err != nil {
		return
	}
	entry, err := s.entryOf(ctx, x.Root)
	if err != nil {
		return
	}
	_ = s.Book.Update(ctx, s.Project, func() (store.Exposure, error) { return s.standing(ctx, entry) })
}

// Refresh brings the entry of a root up to the ledger, after whatever is dead below
// it was settled. One that the ledger does not know any more is dropped.
func (s *Store) Refresh(ctx context.Context, root thread.ID) error {
	if _, err := s.Exposure(ctx, root); errors.Is(err, store.ErrNoBudget) {
		return s.Book.Drop(ctx, Entry{Project: s.Project, ThreadID: root})
	}
	return s.Book.Update(ctx, s.Project, func() (store.Exposure, error) { return s.standing(ctx, root) })
}

// ForgetBudgets implements [store.Deletions]. An entry that a crash has left open is
// brought up to the ledger first: later nobody would know what it came to.
func (s *Store) ForgetBudgets(ctx context.Context, ids []thread.ID, at time.Time) error {
	open, err := s.Book.Open(ctx)
	if err != nil {
		return err
	}
	for _, e := range open {
		if e.Project != s.Project || !slices.Contains(ids, e.ThreadID) {
			continue
		}
		err := s.Book.Update(ctx, s.Project, func() (store.Exposure, error) {
			x, _, err := s.sum(ctx, e.ThreadID, "") // nothing that is deleted is tried again
			return x, err
		})
		if err != nil && !errors.Is(err, store.ErrNoBudget) {
			return err
		}
	}
	return s.Store.ForgetBudgets(ctx, ids, at)
}
