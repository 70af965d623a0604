package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// OpenRoot implements [store.Ledger]. The budget is on disk when it returns.
func (s *Store) OpenRoot(ctx context.Context, id thread.ID, maxSpend thread.Micros, at time.Time) error {
	if maxSpend < 0 {
		return fmt.Errorf("open budget of %s: %s is negative", id, maxSpend)
	}
	run := s.runOf(ctx, id)
	err := s.ledger.Write(repeatable(ctx), Durable, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO budgets (thread_id, run, max_spend, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?) ON CONFLICT (thread_id) DO NOTHING`, id, run, int64(maxSpend), millis(at), millis(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("open budget of %s: %w", id, err)
	}
	return nil
}

// Reserve implements [store.Ledger]. It reads one row, however many siblings
// the child has: the parent's reservations are kept as a running total. The
// reservation is on disk when it returns.
func (s *Store) Reserve(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error {
	return s.reserve(ctx, child, parent, amount, at, hold)
}

// holder adds amount to what is held for children of a parent.
type holder func(ctx context.Context, tx *sql.Tx, parent thread.ID, amount thread.Micros, at time.Time) error

func (s *Store) reserve(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time, take holder) error {
	if amount < 0 {
		return fmt.Errorf("reserve for %s: %s is negative", child, amount)
	}
	run := s.runOf(ctx, child)
	err := s.ledger.Write(repeatable(ctx), Durable, func(ctx context.Context, tx *sql.Tx) error {
		switch row, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, child)); {
		case err == nil:
			return sameReservation(row, parent, amount)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if err := take(ctx, tx, parent, amount, at); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO budgets (thread_id, parent_id, run, max_spend, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?)`, child, parent, run, int64(amount), millis(at), millis(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("reserve for %s: %w", child, err)
	}
	return nil
}

// sameReservation accepts the repetition of a reservation, and no other use of
// a thread that has a budget.
func sameReservation(row store.Budget, parent thread.ID, amount thread.Micros) error {
	switch {
	case !row.Active:
		return fmt.Errorf("its budget is settled: %w", store.ErrNoBudget)
	case row.ParentID != parent || row.MaxSpend != amount:
		return fmt.Errorf("it already has a budget of %s from %q", row.MaxSpend, row.ParentID)
	}
	return nil
}

// hold adds amount to what the children of a parent hold, if it has that much
// left.
func hold(ctx context.Context, tx *sql.Tx, parent thread.ID, amount thread.Micros, at time.Time) error {
	changed, err := changeIn(ctx, tx, `UPDATE budgets SET reserved_spend = reserved_spend + ?, updated_at = ?
		WHERE thread_id = ? AND status = 'active' AND max_spend - actual_spend - reserved_spend - pledged_spend >= ?`,
		int64(amount), millis(at), parent, int64(amount))
	if err != nil || changed {
		return err
	}
	return insufficient(ctx, tx, parent, amount)
}

// insufficient says why nothing could be taken from the parent.
func insufficient(ctx context.Context, tx *sql.Tx, parent thread.ID, amount thread.Micros) error {
	row, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, parent))
	if err != nil {
		return noBudget(err, parent)
	}
	if !row.Active {
		return noBudget(sql.ErrNoRows, parent)
	}
	return &store.InsufficientError{Parent: parent, Requested: amount, Remaining: row.Remaining()}
}

const reportSQL = `UPDATE budgets
	SET actual_spend = actual_spend + CASE WHEN ?1 > own_spend THEN ?1 - own_spend ELSE 0 END,
		own_spend = CASE WHEN ?1 > own_spend THEN ?1 ELSE own_spend END, pledged_spend = 0, updated_at = ?2
	WHERE thread_id = ?3 AND run = ?4 AND status = 'active'`

// Report implements [store.Runner]. The amount is not checked against the
// budget: callers bound a call before they make it, and when a provider bills
// more than was bounded the ledger records what was billed. It is not waited to
// disk; Settle is, and carries every report before it along.
func (r *runner) Report(ctx context.Context, ownTotal thread.Micros, at time.Time) error {
	id := r.id
	change := func(b store.Budget) store.Budget {
		b.Actual += max(0, ownTotal-b.Own)
		b.Own, b.Pledged, b.UpdatedAt = max(b.Own, ownTotal), 0, fromMillis(millis(at))
		return b
	}
	err := r.spendByOne(repeatable(ctx), Local, change, reportSQL, []any{int64(ownTotal), millis(at), id, r.run}, func(ctx context.Context, tx *sql.Tx) error {
		row, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, id))
		if err != nil {
			return noBudget(err, id)
		}
		if row.Own < ownTotal {
			return noBudget(sql.ErrNoRows, id)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("report spend: %w", err)
	}
	return nil
}

// Settle implements [store.Runner]. It is on disk when it returns.
func (r *runner) Settle(ctx context.Context, at time.Time) error {
	err := r.spend(repeatable(ctx), Durable, func(ctx context.Context, tx *sql.Tx) error {
		return settle(ctx, tx, r.id, millis(at))
	})
	if err != nil {
		return fmt.Errorf("settle budget of %s: %w", r.id, err)
	}
	return nil
}

// settleSQL tells what a budget has come to with the statement that ends it, behind which
// no report changes that any more.
const settleSQL = `UPDATE budgets SET status = 'settled', pledged_spend = 0, updated_at = ?
	WHERE thread_id = ? AND status = 'active' RETURNING ` + budgetColumns

// settle ends one budget. The hold of the thread at its parent shrinks from its
// whole reservation to what its active children still hold. Its spend
// goes to the parent and, past ancestors that are settled already and so cannot
// hand it on themselves, up to the first active one.
func settle(ctx context.Context, tx *sql.Tx, id thread.ID, at int64) error {
	row, err := scanBudget(tx.QueryRowContext(ctx, settleSQL, at, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil || row.ParentID == "" {
		return err
	}
	_, err = tx.ExecContext(ctx, aboveSQL+`UPDATE budgets SET actual_spend = actual_spend + ?2, reserved_spend = reserved_spend - ?3, updated_at = ?4
		WHERE thread_id IN (SELECT thread_id FROM above)`, row.ParentID, int64(row.Actual), int64(row.MaxSpend-row.Reserved), at)
	if err != nil {
		return err
	}
	return giveBack(ctx, tx, row.ParentID, row.Remaining(), at)
}
