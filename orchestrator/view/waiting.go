package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Waiting is a question that a thread waits to be answered.
type Waiting struct {
	ThreadID   thread.ID           `json:"thread_id"`
	QuestionID string              `json:"question_id"`
	Kind       thread.QuestionKind `json:"kind"`
	Code       string              `json:"code"` // what it is about, such as turns_exceeded
	Text       string              `json:"text"`
	Options    []thread.Decision   `json:"options"`
	Default    thread.Decision     `json:"default" jsonschema:"holds from deadline_at on"`
	Limits     item.LimitSet       `json:"limits,omitempty"` // as they are
	Most       item.LimitSet       `json:"most,omitempty" jsonschema:"what they can be raised to"`
	Summary    string              `json:"summary,omitempty"` // all of what a handoff proposes, of one question
	AskedAt    time.Time           `json:"asked_at"`
	DeadlineAt time.Time           `json:"deadline_at"`
	Answer     string              `json:"how_to_answer"`
}

// Questions is what threads approve shows.
type Questions struct {
	Success bool      `json:"success"`
	Waiting []Waiting `json:"waiting"`
}

func waitingOf(q thread.Question) Waiting {
	w := Waiting{
		ThreadID: q.ThreadID, QuestionID: q.ID, Kind: q.Kind, Code: q.Code, Text: q.Text, Options: q.Options,
		Default: q.Default, AskedAt: q.AskedAt, DeadlineAt: q.DeadlineAt,
		Answer: "approve_thread with this thread_id, or rye-mcp threads approve " + string(q.ThreadID),
	}
	if q.Limits != nil {
		w.Limits = limit.Set(*q.Limits)
	}
	if q.Most != nil {
		w.Most = limit.Set(*q.Most)
	}
	return w
}

// WaitingBelow lists the open questions of threads and of all below them.
func (v *View) WaitingBelow(ctx context.Context, ids ...thread.ID) ([]Waiting, error) {
	asked := func(id thread.ID) bool { return slices.Contains(ids, id) }
	return v.waiting(ctx, func(q thread.Question) (bool, error) {
		if asked(q.ThreadID) {
			return true, nil
		}
		return lineage.IsBelowAny(q.ThreadID, asked, v.Threads.Getter(ctx))
	})
}

// waiting lists the open questions that are wanted, those of dead threads left
// out. When ctx ends the error is its cause.
func (v *View) waiting(ctx context.Context, want func(thread.Question) (bool, error)) ([]Waiting, error) {
	open, err := v.Threads.Store.Questions(ctx, store.QuestionFilter{Open: true})
	list := []Waiting{}
	for _, q := range open {
		var asks bool
		if asks, err = v.asks(ctx, q, want); err != nil {
			break
		}
		if asks {
			list = append(list, waitingOf(q))
		}
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return list, err
}

// asks reports whether a question is wanted and its thread alive.
func (v *View) asks(ctx context.Context, q thread.Question, want func(thread.Question) (bool, error)) (bool, error) {
	wanted, err := want(q)
	if err != nil || !wanted {
		return false, err
	}
	rec, err := v.Threads.Look(ctx, q.ThreadID)
	return !rec.Status.Terminal(), err
}

// WaitingFor is [View.WaitingBelow] for threads that were looked at.
func (v *View) WaitingFor(ctx context.Context, rows map[thread.ID]thread.Record) ([]Waiting, error) {
	var ids []thread.ID
	for _, rec := range rows {
		if rec.Status == thread.Running {
			ids = append(ids, rec.ThreadID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return v.WaitingBelow(ctx, ids...)
}

// WaitingNext tells what to do about open questions.
func WaitingNext(waiting []Waiting) string {
	return fmt.Sprintf("thread %s waits to be told what to do: %s; or call wait_threads with wait_seconds, which leaves it to the person and to others",
		waiting[0].ThreadID, waiting[0].Answer)
}
