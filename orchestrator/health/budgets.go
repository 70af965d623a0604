package health

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// compareReservations looks for active budgets that nobody will settle.
func (r *reconciling) compareReservations(ctx context.Context) error {
	active, err := r.Checker.Threads.Store.Active(ctx)
	if err != nil {
		return err
	}
	r.Budgets = len(active)
	for _, b := range active {
		if rec, known := r.rows[b.ThreadID]; known && !rec.Status.Terminal() {
			continue
		}
		if err := r.compareReservation(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciling) compareReservation(ctx context.Context, b store.Budget) error {
	id := b.ThreadID
	rec, err := r.Checker.Threads.Store.Get(ctx, id) // it may have started since the rows were read
	switch {
	case errors.Is(err, thread.ErrNotFound):
		if _, found, err := r.folderOf(id); found || err != nil { // its row is being made again
			return err
		}
		r.findMendable(findReservation, id, func(ctx context.Context) (bool, error) {
			return r.Checker.Threads.Store.Mend().Release(ctx, id, r.Checker.Threads.Now())
		}, "a budget of %s without a thread", b.MaxSpend)
		return nil
	case err != nil || !rec.Status.Terminal():
		return err
	}
	// It may have ended since the budgets were read, and is settled before its row says so.
	now, err := r.Checker.Threads.Store.Budget(ctx, id)
	if errors.Is(err, store.ErrNoBudget) || err == nil && !now.Active {
		return nil
	}
	if err != nil {
		return err
	}
	r.findMendable(findReservation, id, func(ctx context.Context) (bool, error) { return r.settle(ctx, id) },
		"the thread is %s and its budget of %s is not settled", rec.Status, b.MaxSpend)
	return nil
}

// compareBudgets holds the ledger against the rows.
func (r *reconciling) compareBudgets(ctx context.Context) error {
	ids := make([]thread.ID, 0, store.MaxPage)
	for id, rec := range r.rows {
		if rec.QueuedAt.IsZero() && rec.AdmittedAt.IsZero() && rec.Cost.Spend == 0 {
			continue // it may have failed before it had a budget
		}
		if ids = append(ids, id); len(ids) == store.MaxPage {
			if err := r.compareBudgetsOf(ctx, ids); err != nil {
				return err
			}
			ids = ids[:0]
		}
	}
	if err := r.compareBudgetsOf(ctx, ids); err != nil || !r.all {
		return err
	}
	off, err := r.Checker.Threads.Store.Mend().Miscounted(ctx)
	for _, id := range off {
		r.findMendable(findTotals, id, r.Checker.Threads.Store.Mend().AddUp, "the running totals of its budget are not what those below it come to")
	}
	return err
}

func (r *reconciling) compareBudgetsOf(ctx context.Context, ids []thread.ID) error {
	budgets, err := r.Checker.Threads.Store.Mend().Budgets(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		rec := r.rows[id]
		b, known := budgets[id]
		switch {
		case !known:
			err = r.budgetMissing(ctx, rec)
		case !b.Active && rec.Status.Terminal() && b.Own != rec.Cost.Spend:
			err = r.budgetDiffers(ctx, rec, b)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func (r *reconciling) budgetMissing(ctx context.Context, rec row) error {
	id := rec.ThreadID
	// It may have been deleted since the rows were read.
	if _, err := r.Checker.Threads.Store.Get(ctx, id); errors.Is(err, thread.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	f, found, err := r.folderOf(id)
	if err != nil {
		return err
	}
	const detail = "the ledger has no budget of the thread, which has spent %s"
	if _, unreadable := r.Checker.Threads.OwnMeta(id); found && unreadable == nil {
		r.findLost(findBudgetMissing, f, detail, rec.Cost.Spend)
	} else {
		r.find(findBudgetMissing, id, detail, rec.Cost.Spend)
	}
	return nil
}

// budgetDiffers tells of a ledger that has another amount than the row. The row is held
// against what is signed by itself.
func (r *reconciling) budgetDiffers(ctx context.Context, rec row, b store.Budget) error {
	id := rec.ThreadID
	now, err := r.Checker.Threads.Store.Get(ctx, id)
	if errors.Is(err, thread.ErrNotFound) || err == nil && now.Cost.Spend == b.Own {
		return nil // it has changed since the rows were read
	}
	if err != nil {
		return err
	}
	const detail = "the ledger says that the thread itself has spent %s, and its row %s"
	meta, unreadable := r.Checker.Threads.OwnMeta(id)
	if unreadable == nil && meta.Status.Terminal() && meta.Cost.Spend != b.Own {
		r.findMendable(findBudgetDiffers, id, func(ctx context.Context) (bool, error) {
			return r.Checker.Threads.Store.Mend().Recount(ctx, id, b.Own, meta.Cost.Spend)
		}, detail, b.Own, now.Cost.Spend)
	} else {
		r.find(findBudgetDiffers, id, detail, b.Own, now.Cost.Spend)
	}
	return nil
}
