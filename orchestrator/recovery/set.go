package recovery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// goesOn reports whether an entry of a running set waits or works, after those whose
// process is gone are settled. Of one that is to stop nothing waits.
func (s *Sweeper) goesOn(ctx context.Context, rec thread.Record, report *Report) (bool, error) {
	entries, _, err := s.Finisher.Store.List(ctx, store.Filter{
		ParentID: rec.ThreadID, States: []thread.State{thread.Created, thread.Running}, Limit: store.MaxPage,
	})
	if err != nil {
		return false, fmt.Errorf("entries of %s: %w", rec.ThreadID, err)
	}
	for _, entry := range entries {
		if _, err := s.examine(ctx, entry, report); err != nil && !thread.WasDeleted(err, entry.ThreadID) {
			return false, err
		}
	}
	set, err := s.Finisher.Store.Set(ctx, rec.ThreadID)
	if errors.Is(err, store.ErrNoSet) {
		return false, nil
	}
	return set.Working > 0 || set.Retrying > 0 || set.Waiting > 0 && rec.CancelRequestedAt.IsZero(), err
}

// Codes of [thread.Problem] of sets.
const (
	codeItemsFailed = "items_failed"
	codeItemsLost   = "items_lost"
)

// shownFailures is how many failed items the problem of a set tells of; the entries
// tell of all.
const shownFailures = 3

// outcomeOfSet sums up the entries of a set that goes on no more.
func (s *Sweeper) outcomeOfSet(ctx context.Context, rec thread.Record) (thread.Outcome, error) {
	entries, err := s.Finisher.Store.Entries(ctx, rec.ThreadID, 0, math.MaxInt32)
	if err != nil {
		return thread.Outcome{}, err
	}
	if len(entries) == 0 {
		return thread.Outcome{State: thread.Error, Error: &thread.Problem{
			Code: codeItemsLost, Message: "its list of items was lost with the registry; map_threads with the same items runs them again",
		}}, nil
	}
	completed := 0
	var failed []string
	for _, e := range entries {
		if e.Status == thread.Completed {
			completed++
			continue
		}
		if len(failed) < shownFailures && !e.Waits() {
			why, err := s.whyFailed(ctx, e)
			if err != nil {
				return thread.Outcome{}, err
			}
			failed = append(failed, fmt.Sprintf("item %d: %s", e.Position, why))
		}
	}
	sum := fmt.Sprintf("%d of %d items completed", completed, len(entries))
	switch {
	case completed == len(entries):
		return thread.Outcome{State: thread.Completed, Result: sum}, nil
	case !rec.CancelRequestedAt.IsZero():
		return thread.Outcome{State: thread.Cancelled, Error: &thread.Problem{Code: "cancelled", Message: rec.CancelCause().Error() + "; " + sum}}, nil
	}
	if more := len(entries) - completed - len(failed); more > 0 {
		failed = append(failed, fmt.Sprintf("%d more", more))
	}
	return thread.Outcome{State: thread.Error, Error: &thread.Problem{
		Code: codeItemsFailed, Message: sum + "; not " + strings.Join(failed, "; "),
	}}, nil
}

// whyFailed says of an entry in a few words why it has not completed.
func (s *Sweeper) whyFailed(ctx context.Context, e store.Entry) (string, error) {
	const most = 200
	problem := e.Refused
	if problem == nil && e.Deleted() {
		return "its thread was deleted", nil
	}
	if problem == nil {
		rec, err := s.Finisher.Store.Get(ctx, e.Last)
		if errors.Is(err, thread.ErrNotFound) {
			return "its thread was deleted", nil
		}
		if err != nil {
			return "", err
		}
		if rec.Outcome != nil {
			problem = rec.Outcome.Error
		}
	}
	if problem == nil {
		return string(e.Status), nil
	}
	return item.Clip(problem.Message, most), nil
}
