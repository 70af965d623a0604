package view

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Question returns what a thread waits to be told.
func (v *View) Question(ctx context.Context, id thread.ID) (Waiting, error) {
	rec, err := v.Threads.LookAsked(ctx, id)
	if err != nil {
		return Waiting{}, threads.Fault(err)
	}
	q, err := v.OpenQuestion(ctx, rec)
	w := waitingOf(q)
	if q.Proposal != nil {
		w.Summary = q.Proposal.Summary
	}
	return w, err
}

// OpenQuestion is what a thread waits to be told. The refusal
// says what there is to answer instead.
func (v *View) OpenQuestion(ctx context.Context, rec thread.Record) (thread.Question, error) {
	if rec.Status.Terminal() {
		return thread.Question{}, tool.Faultf(tool.CodeUnsupported, "thread %s has ended (%s), so there is nothing to decide",
			rec.ThreadID, rec.Status).WithHint("get_status tells how it ended").WithTry("rye-mcp threads show %s", rec.ThreadID)
	}
	open, err := v.Threads.Store.Questions(ctx, store.QuestionFilter{ThreadID: rec.ThreadID, Open: true})
	if err != nil {
		return thread.Question{}, threads.Fault(err)
	}
	if len(open) > 0 {
		return open[0], nil
	}
	f := tool.Faultf(tool.CodeUnsupported, "thread %s has no open question: it works", rec.ThreadID)
	waiting, err := v.WaitingBelow(ctx, rec.ThreadID)
	if err != nil || len(waiting) == 0 {
		return thread.Question{}, f.WithHint("get_status tells how it stands").WithTry("rye-mcp threads show %s", rec.ThreadID)
	}
	var ids []thread.ID
	for _, w := range waiting {
		ids = append(ids, w.ThreadID)
	}
	return thread.Question{}, f.With("waiting_threads", ids).WithHint("%s, which is below it, has one", ids[0])
}

// Questions lists the open questions of the threads of the project, oldest
// first.
func (v *View) Questions(ctx context.Context) (Questions, error) {
	waiting, err := v.waiting(ctx, func(thread.Question) (bool, error) { return true, nil })
	if err != nil {
		return Questions{}, threads.Fault(fmt.Errorf("open questions: %w", err))
	}
	return Questions{Success: true, Waiting: waiting}, nil
}
