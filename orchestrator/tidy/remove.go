package tidy

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// batch is how many deletions go on together: as many as one transaction takes without
// keeping others waiting.
const batch = 500

// Progress tells how far a deletion is.
type Progress struct {
	Done  int // threads
	Total int // as far as it is known
}

// Continued says what became of deletions.
type Continued struct {
	Removed int      // threads of which nothing is left
	Left    int      // of which something may be left
	Kept    []string // why
	Busy    bool     // another process is at it
}

// mostKept bounds the reasons that are told.
const mostKept = 10

func (c *Continued) keep(id thread.ID, err error) {
	c.Left++
	if len(c.Kept) < mostKept {
		c.Kept = append(c.Kept, fmt.Sprintf("%s: %v", id, err))
	}
}

// Continue removes what is left of the threads that were deleted, by any process. It keeps
// on record what cannot be removed now, for the next time. Progress may be nil.
func (t *Tidier) Continue(ctx context.Context, progress func(Progress)) (done Continued, err error) {
	open, err := t.open(ctx, 0)
	if err != nil || len(open) == 0 {
		return done, err
	}
	hold, err := t.Threads.AwaitLease(ctx, deletionsLease, leaseGrace)
	if err != nil || hold == nil {
		return Continued{Left: len(open), Busy: true}, err
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	for after := int64(0); ; {
		if open, err = t.open(ctx, after); err != nil || len(open) == 0 {
			return done, err
		}
		if err := t.removeBatch(ctx, open, &done); err != nil {
			return done, err
		}
		if progress != nil {
			progress(Progress{Done: done.Removed, Total: done.Removed + done.Left})
		}
		after = open[len(open)-1].Seq
	}
}

func (t *Tidier) open(ctx context.Context, after int64) ([]store.Deletion, error) {
	return t.Threads.Store.Deletions(ctx, store.DeletionFilter{Open: true, After: after, Limit: batch})
}

// removeBatch removes what is left of some threads, and ends their deletions. The caller
// has the lease.
func (t *Tidier) removeBatch(ctx context.Context, open []store.Deletion, done *Continued) error {
	ids := make([]thread.ID, len(open))
	for i, d := range open {
		ids[i] = d.Record.ThreadID
	}
	s, at := t.Threads.Store, t.Threads.Crashpoints.At
	if err := s.ForgetBudgets(ctx, ids, t.Threads.Now()); err != nil {
		return err
	}
	at(CrashLedger)
	unwritten := t.remember(ctx) // on a full disk the files go first
	at(CrashRemembered)
	removed := t.removeFiles(ctx, open, done)
	if err := t.forget(ctx, removed); err != nil {
		return err
	}
	at(CrashForgotten)
	if unwritten != nil {
		if err := t.remember(ctx); err != nil {
			return err
		}
	}
	if err := s.EndDeletions(ctx, removed); err != nil {
		return err
	}
	done.Removed += len(removed)
	at(CrashEnded)
	if err := t.remember(ctx); err != nil { // the next one does
		t.Threads.Log.Warn().Err(err).Msg("what outlives the databases of deleted threads")
	}
	return context.Cause(ctx)
}

// remember writes down what has to be known of the deleted should the databases be lost.
func (t *Tidier) remember(ctx context.Context) error {
	gone, err := t.Threads.Store.Gone(ctx)
	if err != nil {
		return err
	}
	return t.Threads.Records.Gone().Write(gone)
}

// removeFiles removes what lies beside the rows of some threads, and returns those of
// which nothing is left.
func (t *Tidier) removeFiles(ctx context.Context, open []store.Deletion, done *Continued) (removed []thread.ID) {
	for _, d := range open {
		if ctx.Err() != nil {
			break
		}
		if err := t.removeOne(ctx, d.Record); err != nil {
			done.keep(d.Record.ThreadID, err)
			t.Threads.Log.Warn().Err(err).Str("thread_id", string(d.Record.ThreadID)).Msg("something is left of a deleted thread")
			continue
		}
		removed = append(removed, d.Record.ThreadID)
	}
	return removed
}

func (t *Tidier) removeOne(ctx context.Context, rec thread.Record) error {
	// Without a row nobody begins to write: a life is taken first, then the row is read.
	if err := t.awaitWriter(ctx, rec.ThreadID); err != nil {
		return err
	}
	at := t.Threads.Crashpoints.At
	var apart error // keeps the deletion open, and no files
	for _, b := range t.Belongings {
		switch err := b.Remove(ctx, rec); {
		case err != nil && b.Apart && ctx.Err() == nil:
			apart = errors.Join(apart, fmt.Errorf("%s: %w", b.Name, err))
		case err != nil:
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		at(CrashBelongings)
	}
	if err := notOurs(t.Threads.Finisher.RemoveKnowledge(rec)); err != nil {
		return err
	}
	at(CrashKnowledge)
	if err := notOurs(t.Threads.Records.Of(rec.ThreadID).Whole().Remove()); err != nil {
		return err
	}
	at(CrashFolder)
	return apart
}

// notOurs is nil for what lies behind a link: it is not the thread's.
func notOurs(err error) error {
	if errors.Is(err, records.ErrLinked) {
		return nil
	}
	return err
}

// forget takes what threads have left out of the search index. It looks at the files
// at each search anyway, so that a failure keeps nobody.
func (t *Tidier) forget(ctx context.Context, ids []thread.ID) error {
	if t.Forget == nil || len(ids) == 0 {
		return nil
	}
	gone, err := t.Threads.Store.Deletions(ctx, store.DeletionFilter{IDs: ids})
	if err != nil {
		return err
	}
	var entries []string
	for _, d := range gone {
		entries = append(entries, finish.KnowledgeIDs(d.Record)...)
	}
	if err := t.Forget(ctx, entries); err != nil && ctx.Err() == nil {
		t.Threads.Log.Warn().Err(err).Msg("the search index still has what was deleted, until the next search")
	}
	return nil
}
