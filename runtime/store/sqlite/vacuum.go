package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// shrinker is the part of a [Store] that gives room back.
type shrinker struct{ registry, ledger *database }

// Vacuum implements [store.Shrinker].
func (s shrinker) Vacuum(ctx context.Context, alone bool) (done []store.Vacuumed, err error) {
	for _, d := range []*database{s.registry, s.ledger} {
		v, err := d.Vacuum(ctx, alone)
		if err != nil {
			return done, fmt.Errorf("vacuum the %s: %w", d.name, err)
		}
		done = append(done, store.Vacuumed{Name: d.name, Before: v.Before, After: v.After, Kept: v.Kept})
	}
	return done, nil
}

// BeginSweep implements [store.Sweeps].
func (s shrinker) BeginSweep(ctx context.Context, now time.Time, interval, most time.Duration) (by time.Time, due bool, err error) {
	err = s.registry.write(ctx, relaxed, func(ctx context.Context, tx *sql.Tx) error {
		var swept, counted int64
		err := tx.QueryRowContext(ctx, "SELECT swept_at, counted_at FROM sweeps").Scan(&swept, &counted)
		first := errors.Is(err, sql.ErrNoRows)
		if err != nil && !first {
			return err
		}
		if since := now.Sub(fromMillis(swept)); !first && since >= 0 && since < interval {
			return nil
		}
		due = true
		if by = fromMillis(counted).Add(most); first {
			if by, err = newestUse(ctx, tx); err != nil {
				return err
			}
		}
		if by.After(now) || by.IsZero() {
			by = now
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO sweeps (one, swept_at, counted_at) VALUES (1, ?1, ?2)
			ON CONFLICT (one) DO UPDATE SET swept_at = ?1, counted_at = ?2`, millis(now), millis(by))
		return err
	})
	if err != nil {
		return by, false, fmt.Errorf("begin a sweep: %w", err)
	}
	return by, due, nil
}
