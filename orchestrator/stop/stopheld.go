package stop

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// A stop begins with a record of it, so that nothing is added below what ends. When
// the database is held by a process that does not go on, the record has to wait:
// nobody could be stopped otherwise, that very process included.

// intendFreed puts a cancel on record that could not be, because a thread that is to
// stop holds the database itself: its process is ended first, and what it took for
// that is returned. Otherwise the error stays.
func (s *Stopper) intendFreed(
	ctx context.Context, tops []thread.ID, ladder life.Ladder, cause error,
) (*Receipt, error) {
	busy, ok := errors.AsType[*thread.BusyError](cause)
	if !ok {
		return nil, cause
	}
	rows, err := s.trees(ctx, tops)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	for _, rec := range rows {
		rec.Process = s.Threads.Life.Find(rec)
		if rec.PID == 0 || rec.PID != busy.Holder.PID {
			continue
		}
		how, err := s.Threads.Life.Stop(ctx, rec, ladder, nil)
		if err != nil {
			return nil, errors.Join(cause, err)
		}
		if how == life.AlreadyGone {
			continue
		}
		first := receipt(rec, string(how), nil)
		return &first, s.intend(ctx, tops)
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
func (s *Stopper) stopUnrecorded(
	ctx context.Context, tops []thread.ID, ladder life.Ladder, cause error,
) ([]Receipt, error) {
	if _, ok := errors.AsType[*thread.BusyError](cause); !ok || ladder.Soft > 0 {
		return nil, cause
	}
	rows, err := s.trees(ctx, tops)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	receipts := make([]Receipt, len(rows))
	for i, rec := range rows {
		if rec.Status.Terminal() {
			receipts[i] = s.stopEnded(ctx, rec, ladder)
			continue
		}
		if rec.Process = s.Threads.Life.Find(rec); !s.near(rec.Process) {
			receipts[i] = receipt(rec, howEnded, cause)
			continue
		}
		how, err := s.Threads.Life.Stop(ctx, rec, ladder, nil)
		receipts[i] = receipt(rec, string(how), errors.Join(err, fmt.Errorf("its process is ended, and that is not recorded yet: %w", cause)))
	}
	return receipts, nil
}

// suspendedAtStart reports whether the process of a thread is suspended that its row
// does not name yet.
func (s *stopping) suspendedAtStart(rec thread.Record) bool {
	rec.Process = s.Threads.Life.Find(rec)
	return s.Threads.Life.Suspended(rec)
}

// stopUnnamed ends the process of a thread that its row does not name: its starter has
// died before that was recorded, and it was suspended before it claimed the row.
func (s *stopping) stopUnnamed(ctx context.Context, rec thread.Record, byItself string) Receipt {
	if rec.Process = s.Threads.Life.Find(rec); rec.PID == 0 {
		return receipt(rec, byItself, nil)
	}
	how, err := s.Threads.Life.Stop(ctx, rec, s.ladder, nil)
	after, rowErr := s.Threads.AwaitRow(ctx, rec, func(r thread.Record) bool { return r.Status.Terminal() || err != nil })
	return receipt(after, string(how), errors.Join(err, rowErr))
}

// stopEnded ends the process of a thread that has ended where that process is
// suspended: it was on its way out, keeps its locks, and would do so for ever. Any
// other is about to end by itself.
func (s *Stopper) stopEnded(ctx context.Context, rec thread.Record, ladder life.Ladder) Receipt {
	if !s.Threads.Life.Suspended(rec) {
		return receipt(rec, howEnded, nil)
	}
	how, err := s.Threads.Life.Stop(ctx, rec, ladder, nil)
	if how == life.AlreadyGone {
		how = howEnded
	}
	return receipt(rec, string(how), err)
}
