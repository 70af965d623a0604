package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
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
		p := c.processOf(rec)
		if p.PID == 0 || p.PID != busy.Holder.PID || !c.lives(rec.ThreadID, p) {
			continue
		}
		how, err := process.StopGroup(ctx, p.PID, func() bool { return c.lives(rec.ThreadID, p) }, ladder)
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
		p := c.processOf(rec)
		if rec.Status.Terminal() {
			receipts[i] = c.stopEnded(ctx, rec, ladder)
			continue
		}
		if p.PID == 0 || !c.near(p) {
			receipts[i] = receipt(rec, howEnded, cause)
			continue
		}
		how, err := process.StopGroup(ctx, p.PID, func() bool { return c.lives(rec.ThreadID, p) }, ladder)
		receipts[i] = receipt(rec, string(how), errors.Join(err, fmt.Errorf("its process is ended, and that is not recorded yet: %w", cause)))
	}
	return receipts, nil
}

// processOf is the process of a thread. One that was just started may not be in its row
// yet, because the database is held, perhaps by that process itself; it is known by its
// arguments then.
func (c *Controller) processOf(rec thread.Record) thread.Process {
	if rec.PID != 0 || rec.Status.Terminal() {
		return rec.Process
	}
	pid, err := process.Leader(process.Mark(c.Project, string(rec.ThreadID)), spawn.Args(c.Project, rec.ThreadID))
	if err != nil || pid == 0 {
		return rec.Process
	}
	return thread.Process(c.Place.Identify(pid))
}

// stopUnnamed ends the process of a thread that its row does not name: its starter has
// died before that was recorded, and it was suspended before it claimed the row.
func (s *stopping) stopUnnamed(ctx context.Context, rec thread.Record, byItself string) Receipt {
	p := s.processOf(rec)
	if p.PID == 0 {
		return receipt(rec, byItself, nil)
	}
	how, err := process.StopGroup(ctx, p.PID, func() bool { return s.lives(rec.ThreadID, p) }, s.ladder)
	after, rowErr := s.awaitRow(ctx, rec, func(r thread.Record) bool { return r.Status.Terminal() || err != nil })
	return receipt(after, string(how), errors.Join(err, rowErr))
}

// stopEnded ends the process of a thread that has ended where that process is
// suspended: it was on its way out, keeps its locks, and would do so for ever. Any
// other is about to end by itself.
func (c *Controller) stopEnded(ctx context.Context, rec thread.Record, ladder process.Ladder) Receipt {
	p := rec.Process
	if !c.near(p) || !process.Stopped(p.PID) || !c.lives(rec.ThreadID, p) {
		return receipt(rec, howEnded, nil)
	}
	how, err := process.StopGroup(ctx, p.PID, func() bool { return c.lives(rec.ThreadID, p) }, ladder)
	return receipt(rec, string(how), err)
}

// lives tells that a process is the one that was found. One whose start is not known
// is that only while the thread's life lock is held: its number may be another's by
// now. The others let go of that lock a moment before they end.
func (c *Controller) lives(id thread.ID, p thread.Process) bool {
	if !c.near(p) {
		return false
	}
	if p.Started != 0 {
		return !process.Gone(p.PID)
	}
	held, err := process.Held(c.folder(id).Lock())
	return err == nil && held
}
