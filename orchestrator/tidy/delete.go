package tidy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Delete deletes a thread with its whole chain and all that is below it, or tells what
// that would be. It is done only after somebody has agreed to what was shown: a client
// by a confirm within an hour of a dry run.
func (t *Tidier) Delete(ctx context.Context, req DeleteRequest) (Deleted, error) {
	req.From = cmp.Or(req.From, t.Threads.Parent) // a command that a thread has started asks for that
	s, err := t.setOf(ctx, req.ThreadID)
	if errors.Is(err, thread.ErrNotFound) {
		return t.deletedBefore(ctx, req)
	}
	if err == nil {
		err = t.mayDelete(ctx, req.From, s)
	}
	if err != nil {
		return Deleted{}, threads.Fault(err)
	}
	told := t.tell(s)
	told.ThreadID = req.ThreadID
	told.With = t.goesWith(ctx, s).told()
	grown, agreed, err := t.agreed(ctx, req, s, &told)
	if err != nil || !agreed {
		return told, faultOrNil(err)
	}
	told.Grown = grown
	if s, err = t.clear(ctx, req, s); err != nil {
		return Deleted{}, threads.Fault(err)
	}
	if err := t.deleteSet(ctx, s); err != nil {
		return Deleted{}, threads.Fault(err)
	}
	told.Living = nil
	// The deletion is on record: a caller that goes away does not take it back.
	return told, faultOrNil(t.finish(context.WithoutCancel(ctx), req.Progress, &told))
}

func faultOrNil(err error) error {
	if err == nil {
		return nil
	}
	return threads.Fault(err)
}

// deletedBefore answers for a thread that there is none of: one that was deleted stays
// so, and what a crash has left of it is removed.
func (t *Tidier) deletedBefore(ctx context.Context, req DeleteRequest) (Deleted, error) {
	gone, err := t.Threads.Store.Deletions(ctx, store.DeletionFilter{IDs: []thread.ID{req.ThreadID}})
	if err != nil {
		return Deleted{}, threads.Fault(err)
	}
	if len(gone) == 0 || req.From != "" {
		return Deleted{}, t.Threads.NoThread(ctx, req.ThreadID)
	}
	told := Deleted{Success: true, ThreadID: req.ThreadID, ThreadIDs: []thread.ID{}, DeletedAt: gone[0].At.Format(time.RFC3339)}
	if gone[0].Open && !req.DryRun {
		err = t.finish(ctx, req.Progress, &told)
	}
	return told, faultOrNil(err)
}

// agreed reports whether what goes is what somebody has agreed to; else told says what
// would go and what to do next. With force it may have grown since, by so many.
func (t *Tidier) agreed(ctx context.Context, req DeleteRequest, s set, told *Deleted) (grown int, agreed bool, err error) {
	if why := t.blocks(ctx, s); why != nil {
		told.Blocked = why.Error()
	}
	switch {
	case req.DryRun:
	case req.Agreed && (req.Digest == "" || req.Digest == told.digest):
		return 0, true, nil
	case req.Agreed:
		told.DryRun, told.Next = true, "nothing was deleted: other threads go along than were shown"
		return 0, false, nil
	case req.Confirm:
		shown, err := t.Threads.Store.ShownPlan(ctx, planKey(req), t.Threads.Now())
		if err != nil {
			return 0, false, err
		}
		if shown != nil && shown.Digest == told.digest {
			return 0, true, nil
		}
		if shown != nil && req.Force {
			return came(s, shown.At), true, nil
		}
		told.Next = "nothing was deleted: confirm holds for what a dry run has shown, and that is now this; "
	}
	told.DryRun = true
	told.Next += nextStep(*told, req.Force)
	return 0, false, t.Threads.Store.ShowPlan(ctx, planKey(req), store.ShownPlan{Digest: told.digest, At: t.Threads.Now()})
}

// nextStep says how a deletion that was shown is done.
func nextStep(told Deleted, force bool) string {
	switch {
	case force && len(told.Living) > 0:
		return "delete_thread with confirm and force stops those that live and deletes all of these"
	case len(told.Living) > 0:
		return "some have not ended: wait_threads or cancel_thread first, or delete_thread with dry_run and force"
	case told.Blocked != "" && !force:
		return "put right what blocks it, or delete_thread with dry_run and force"
	case force:
		return "delete_thread with confirm and force deletes these"
	}
	return "delete_thread with confirm: true deletes these, for ever"
}

// planKey is what a shown plan is kept by.
func planKey(req DeleteRequest) string {
	return fmt.Sprintf("delete %s %t %s %s", req.ThreadID, req.Force, req.From, req.By)
}

// came counts the members that came after a time.
func came(s set, at time.Time) (n int) {
	for _, rec := range s.members {
		if rec.CreatedAt.After(at) {
			n++
		}
	}
	return n
}

// clear sees to it that all of a set has ended and nobody writes to it, and returns the
// set as it is then.
func (t *Tidier) clear(ctx context.Context, req DeleteRequest, s set) (set, error) {
	if !req.Force {
		if living := s.living(); len(living) > 0 {
			rec, err := t.Threads.Store.Get(ctx, living[0])
			return s, errors.Join(err, notEnded(living[0], rec.Status))
		}
		if err := t.blocks(ctx, s); err != nil {
			return s, err
		}
		return s, t.awaitFiles(ctx, s)
	}
	if len(s.living()) > 0 {
		ladder, _ := t.Settings.Begin().Patience()
		// The caller going away does not take back the intent.
		if _, err := t.Stop.By("its deletion").Trees(context.WithoutCancel(ctx), []thread.ID{s.top}, ladder); err != nil {
			return s, err
		}
		var err error
		if s, err = t.setOf(ctx, s.top); err != nil {
			return s, err
		}
		if living := s.living(); len(living) > 0 {
			rec, err := t.Threads.Store.Get(ctx, living[0])
			return s, errors.Join(err, notStopped(living[0], rec.Status))
		}
	}
	return s, t.awaitFiles(ctx, s)
}

// deleteSet puts the deletion of a set on record.
func (t *Tidier) deleteSet(ctx context.Context, s set) error {
	refused, err := t.Threads.Store.Delete(ctx, [][]thread.ID{s.ids()}, t.Threads.Now())
	if err == nil && refused[0] != nil {
		err = refusal(refused[0])
	}
	if err == nil {
		t.Threads.Crashpoints.At(CrashIntended)
	}
	return err
}

// finish removes what is left of the deleted.
func (t *Tidier) finish(ctx context.Context, progress func(Progress), told *Deleted) error {
	done, err := t.Continue(ctx, progress)
	told.Left, told.Kept = done.Left, done.Kept
	if err != nil {
		return leftover(err)
	}
	return nil
}
