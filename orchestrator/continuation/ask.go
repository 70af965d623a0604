package continuation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// HandoffAsk asks a running thread to hand over.
type HandoffAsk struct {
	ThreadID thread.ID // any of its chain
	Summary  string    // that the successor is given; empty: as for every handoff
	By       string    // who asks, in words
	// From is the thread that asks, which may ask threads below it only. Empty: whoever
	// works with the project, or the thread that this process runs in.
	From thread.ID
}

// HandoffAsked is the answer to handoff_thread.
type HandoffAsked struct {
	Success          bool         `json:"success"`
	ThreadID         thread.ID    `json:"thread_id" jsonschema:"the thread that was asked for"`
	ResolvedThreadID thread.ID    `json:"resolved_thread_id,omitempty" jsonschema:"the newest of its chain, which hands over"`
	Status           thread.State `json:"status"`
	Approval         bool         `json:"approval,omitempty" jsonschema:"it asks first whether it may (continuation.approval)"`
	Next             string       `json:"next" jsonschema:"what to call next"`
}

// AskHandoff asks a running thread to hand over to a new thread when the turn that it is
// in has ended. The request is kept until then, also while the thread waits. It is
// refused for a thread that does not run, and for one that has handed over too often.
func (c *Continuer) AskHandoff(ctx context.Context, ask HandoffAsk) (HandoffAsked, error) {
	if ask.From == "" {
		ask.From = c.Threads.Parent
	}
	if ask.From != "" {
		ask.By = "thread " + string(ask.From)
	}
	if strings.TrimSpace(ask.Summary) == "" {
		ask.Summary = ""
	}
	if err := thread.CheckSummary(ask.Summary); err != nil {
		return HandoffAsked{}, tool.Faultf(tool.CodeBadArguments, "%w", err)
	}
	rec, err := c.Threads.LookAsked(ctx, ask.ThreadID)
	if err != nil {
		return HandoffAsked{}, threads.Fault(err)
	}
	settings, err := c.mayAsk(ctx, rec, ask.From)
	if err != nil {
		return HandoffAsked{}, threads.Fault(err)
	}
	request := thread.HandoffRequest{By: ask.By, Summary: ask.Summary, At: c.Threads.Now()}
	if err := c.Threads.Store.AskHandoff(ctx, rec.ThreadID, request); err != nil {
		return HandoffAsked{}, c.notAsked(ctx, rec.ThreadID, err)
	}
	answer := HandoffAsked{
		Success: true, ThreadID: ask.ThreadID, Status: rec.Status, Approval: settings.Approval == config.ApprovalAsk,
		Next: "wait_threads waits for the thread that continues it too; get_chain names that",
	}
	if answer.Approval {
		answer.Next = "it asks first: get_status has the question, approve_thread answers it"
	}
	if rec.ThreadID != ask.ThreadID {
		answer.ResolvedThreadID = rec.ThreadID
	}
	return answer, nil
}

// mayAsk refuses what would be in vain.
func (c *Continuer) mayAsk(ctx context.Context, rec thread.Record, from thread.ID) (config.Continuation, error) {
	set, _, err := c.Settings.Begin().Config.Coordination()
	if err != nil {
		return set.Continuation, err
	}
	if from != "" {
		if err := c.Threads.IsBelow(ctx, rec.ThreadID, from, "so it cannot be asked to hand over from there"); err != nil {
			return set.Continuation, err
		}
	}
	if rec.Kind != thread.KindDirective {
		return set.Continuation, tool.Faultf(tool.CodeUnsupported, "%s has no conversation to hand over", rec.ThreadID).
			WithHint("get_status says what it is").WithTry("rye-mcp threads show %s", rec.ThreadID)
	}
	if err := mayHandOver(rec); err != nil {
		return set.Continuation, err
	}
	meta, err := c.Threads.OwnMeta(rec.ThreadID)
	if err != nil {
		return set.Continuation, err
	}
	if done := meta.Continuation.HandoffsNow(); done >= set.Continuation.MaxChain {
		return set.Continuation, tool.Faultf(tool.CodeUnsupported, "thread %s cannot hand over: %w", rec.ThreadID,
			&handoff.ChainError{Handoffs: done, Max: set.Continuation.MaxChain}).
			WithHint("when it has ended, a person can go on with it by resume_thread").WithTry("%s", tryResume(rec.ThreadID))
	}
	return set.Continuation, nil
}

// mayHandOver refuses a thread that does not run, and says what goes on with it.
func mayHandOver(rec thread.Record) error {
	switch {
	case rec.Status.Terminal():
		return tool.Faultf(tool.CodeConflict, "thread %s has ended (%s); only one that runs can hand over", rec.ThreadID, rec.Status).
			With("thread_id", rec.ThreadID).WithHint("resume_thread with a message goes on with it in a new thread").WithTry("rye-mcp threads resume %s MESSAGE", rec.ThreadID)
	case rec.Status != thread.Running:
		return tool.Faultf(tool.CodeConflict, "thread %s is %s and has not begun, so it has nothing to hand over", rec.ThreadID, rec.Status).
			With("thread_id", rec.ThreadID).WithHint("wait_threads until it has ended; resume_thread goes on with it then").WithTry("%s", tryResume(rec.ThreadID))
	case !rec.CancelRequestedAt.IsZero():
		return tool.Faultf(tool.CodeConflict, "thread %s has been asked to stop, so it does not hand over", rec.ThreadID).
			With("thread_id", rec.ThreadID).WithHint("wait_threads until it has ended; resume_thread goes on with it then").WithTry("%s", tryResume(rec.ThreadID))
	}
	return nil
}

func tryResume(id thread.ID) string {
	return fmt.Sprintf("when it has ended: rye-mcp threads resume %s MESSAGE", id)
}

// notAsked tells of a thread that has ended since it was looked at.
func (c *Continuer) notAsked(ctx context.Context, id thread.ID, err error) error {
	if !errors.Is(err, thread.ErrSettled) {
		return threads.Fault(err)
	}
	now, getErr := c.Threads.Store.Get(ctx, id)
	if getErr == nil {
		if refused := mayHandOver(now); refused != nil {
			return refused
		}
	}
	return threads.Fault(err)
}
