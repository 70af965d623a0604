package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// sweeps is the [store.Sweeps] of a store.
type sweeps struct{ registry Database }

// BeginSweep implements [store.Sweeps].
func (s sweeps) BeginSweep(ctx context.Context, now time.Time, interval, most time.Duration) (by time.Time, due bool, err error) {
	err = s.registry.Write(ctx, Relaxed, func(ctx context.Context, tx *sql.Tx) error {
		due = false
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
