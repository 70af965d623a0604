package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// CodeNotHandedOver is the [thread.Problem.Code] of a thread that was to continue
// another and never came to it.
const CodeNotHandedOver = "not_handed_over"

// NotHandedOver is how a thread ends that was to continue another and never came
// to it. Why may be nil.
func NotHandedOver(before thread.ID, why error) thread.Outcome {
	message := fmt.Sprintf("it never began: %s, which it was to continue, was not handed over to it", before)
	if why != nil {
		message += ": " + why.Error()
	}
	return thread.Outcome{State: thread.Cancelled, Error: &thread.Problem{
		Code: CodeNotHandedOver, Message: message, Doing: thread.DoingStarting,
	}}
}

// awaitsHandoff tells that a thread is to continue another and is not in the queue for
// that yet: how things stand with it, the one before decides.
func awaitsHandoff(rec thread.Record) bool {
	return rec.Status == thread.Created && rec.ContinuationOf != "" && rec.QueuedAt.IsZero() && rec.AdmittedAt.IsZero()
}

// afterPredecessor settles the thread that rec is to continue, when that is dead: it
// may have handed over before. It returns the row of rec after that, and whether
// the caller may act on it, which not before the thread before has ended.
func (s *Sweeper) afterPredecessor(
	ctx context.Context, rec thread.Record, report *Report,
) (now thread.Record, mayAct bool, err error) {
	before, err := s.Finisher.Store.Get(ctx, rec.ContinuationOf)
	if errors.Is(err, thread.ErrNotFound) || err == nil && awaitsHandoff(before) {
		return rec, true, nil // one that has not begun hands nothing over; a damaged registry can even have a circle
	}
	if err == nil {
		before, err = s.examine(ctx, before, report)
	}
	if err != nil || !before.Status.Terminal() {
		return rec, false, err
	}
	now, err = s.Finisher.Store.Get(ctx, rec.ThreadID)
	return now, err == nil && !now.Status.Terminal(), err
}

// LeftBehind reports whether a thread was to continue another that does not name it. A
// cancel of its own changes nothing: nobody may take it for the one that continues that
// thread.
func LeftBehind(ctx context.Context, rows store.Store, rec thread.Record) (bool, error) {
	if rec.ContinuationOf == "" {
		return false, nil
	}
	before, err := rows.Get(ctx, rec.ContinuationOf)
	if errors.Is(err, thread.ErrNotFound) {
		return true, nil
	}
	return before.ContinuationThreadID != rec.ThreadID, err
}
