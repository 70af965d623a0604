package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// A stop begins with a record of it, so that nothing is added below what ends. When
// the database is held by a process that does not go on, the record has to wait:
// nobody could be stopped otherwise, that very process included.

// intendFreed puts a cancel on record that could not be, because a thread that is to
// stop holds the database itself: its process is ended first, and what it took for
// that is returned. Otherwise the error stays.
func (c *Controller) intendFreed(
	ctx context.Context, tops []thread.ID, ladder process.Ladder, cause error,
) (*Receipt, error) {
	busy, ok := errors.AsType[*thread.BusyError](cause)
	if !ok {
		return nil, cause
	}
	rows, err := c.trees(ctx, tops)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	for _, rec := range rows {
		if rec.PID == 0 || rec.PID != busy.Holder.PID || !c.alive(ctx, rec) {
			continue
		}
		how, err := process.StopGroup(ctx, rec.PID, func() bool { return c.alive(ctx, rec) }, ladder)
		if err != nil {
			return nil, errors.Join(cause, err)
		}
		first := receipt(rec, string(how), nil)
		return &first, c.intend(ctx, tops)
	}
	return nil, cause
}

// amend says of a thread that was stopped before the others how that was done.
func (r *Receipt) amend(receipts []Receipt) []Receipt {
	for i := range receipts {
		if r != nil && receipts[i].ThreadID == r.ThreadID && receipts[i].How == howEnded {
			receipts[i].How = r.How
		}
	}
	return receipts
}

// stopUnrecorded ends processes although that cannot be recorded, when there is to
// be no soft stop: a kill. The next look at the threads records it.
func (c *Controller) stopUnrecorded(
	ctx context.Context, tops []thread.ID, ladder process.Ladder, cause error,
) ([]Receipt, error) {
	if _, ok := errors.AsType[*thread.BusyError](cause); !ok || ladder.Soft > 0 {
		return nil, cause
	}
	rows, err := c.trees(ctx, tops)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	receipts := make([]Receipt, len(rows))
	for i, rec := range rows {
		if rec.Status.Terminal() || rec.PID == 0 || !c.near(rec.Process) {
			receipts[i] = receipt(rec, howEnded, unlessEnded(rec, cause))
			continue
		}
		how, err := process.StopGroup(ctx, rec.PID, func() bool { return c.alive(ctx, rec) }, ladder)
		receipts[i] = receipt(rec, string(how), errors.Join(err, fmt.Errorf("its process is ended, and that is not recorded yet: %w", cause)))
	}
	return receipts, nil
}

func unlessEnded(rec thread.Record, err error) error {
	if rec.Status.Terminal() {
		return nil
	}
	return err
}
