package view

import (
	"context"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Standing is how a thread stands for whoever holds a handle of it.
type Standing struct {
	Started           // as the answer to its start
	Created time.Time // of the thread that was asked about, whatever continues it
	Updated time.Time
	// Duration is how long it may run; 0 when that is not known.
	Duration time.Duration
	LastTool string            // called since, or with, the last words; may be empty
	LastText string            // of its model
	Asks     []thread.Question // open ones, here and below
}

// Standing tells how a thread and those that continue it stand. The error is
// thread.ErrNotFound, wrapped, when there is none.
func (v *View) Standing(ctx context.Context, id thread.ID) (Standing, error) {
	first, err := v.Threads.Store.Get(ctx, id)
	if err != nil {
		return Standing{}, err
	}
	started, err := v.Started(ctx, id, false)
	if err != nil {
		return Standing{}, err
	}
	now, err := v.Threads.Look(ctx, id)
	if err != nil {
		return Standing{}, threads.Fault(err)
	}
	s := Standing{Started: started, Created: first.CreatedAt, Updated: now.UpdatedAt}
	if meta, err := v.Threads.Described(now.ThreadID); err == nil {
		s.Duration = time.Duration(meta.Limits.DurationSeconds * float64(time.Second))
	}
	if last, err := v.Threads.LastWords(now.ThreadID); err == nil {
		s.LastTool, s.LastText = last.Tool, last.Text
	}
	if now.Status == thread.Running {
		s.Asks, err = v.questionsBelow(ctx, now.ThreadID)
	}
	return s, err
}

// questionsBelow are the open questions of a thread and of all below it.
func (v *View) questionsBelow(ctx context.Context, id thread.ID) ([]thread.Question, error) {
	open, err := v.Threads.Store.Questions(ctx, store.QuestionFilter{Open: true})
	if err != nil {
		return nil, threads.Fault(err)
	}
	below := func(q thread.Question) (bool, error) {
		if q.ThreadID == id {
			return true, nil
		}
		return lineage.IsBelowAny(q.ThreadID, func(above thread.ID) bool { return above == id }, v.Threads.Getter(ctx))
	}
	var failed error
	open = slices.DeleteFunc(open, func(q thread.Question) bool {
		asks, err := v.asks(ctx, q, below)
		if err != nil && failed == nil {
			failed = threads.Fault(err)
		}
		return err != nil || !asks
	})
	return open, failed
}
