package control

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/bounds"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ApproveRequest answers the open question of a thread.
type ApproveRequest struct {
	ThreadID thread.ID
	Decision thread.Decision
	Limits   item.LimitSet // of a raise: new values, as given
	Summary  string        // of an accepted handoff: what the successor is given; empty: as proposed
	By       string        // who answers, in words
	Person   bool          // a person answers, who may raise any root
	// From is the thread that answers, which may be about threads below it only.
	// Empty: the user of the project, or the thread that this process runs
	// in.
	From thread.ID
}

// Approved is the answer to approve_thread.
type Approved struct {
	Success    bool               `json:"success"`
	ThreadID   thread.ID          `json:"thread_id"`
	QuestionID string             `json:"question_id"`
	Decision   thread.Decision    `json:"decision"`
	Limits     map[string]float64 `json:"limits,omitempty" alias:"limit_overrides" jsonschema:"the new values"`
	By         string             `json:"answered_by"`
	Next       string             `json:"next,omitempty" jsonschema:"what to call next"`
}

// Approve answers the open question of a thread. The first answer counts. It
// refuses what cannot be carried out: limits that are no more than was used, or
// more than the parent has, and a thread that answers for itself.
func (c *Controller) Approve(ctx context.Context, req ApproveRequest) (Approved, error) {
	rec, err := c.Threads.LookAsked(ctx, req.ThreadID)
	if err != nil {
		return Approved{}, threads.Fault(err)
	}
	if req.From == "" {
		req.From = c.Threads.Parent
	}
	if req.From != "" {
		if err := c.Threads.IsBelow(ctx, rec.ThreadID, req.From, "so it cannot decide about it"); err != nil {
			return Approved{}, err
		}
		req.By = "thread " + string(req.From)
	}
	q, err := c.View.OpenQuestion(ctx, rec)
	if err != nil {
		return Approved{}, err
	}
	answer, err := c.judge(ctx, rec, q, req)
	if err != nil {
		return Approved{}, err
	}
	if q, err = c.Threads.Store.Answer(ctx, q.ID, answer); err != nil {
		return Approved{}, answerFault(err)
	}
	c.Threads.Log.Info().Str("thread_id", string(rec.ThreadID)).Str("decision", string(answer.Decision)).Str("by", answer.By).
		Msg("question answered")
	return Approved{
		Success: true, ThreadID: rec.ThreadID, QuestionID: q.ID, Decision: answer.Decision, Limits: answer.Limits, By: answer.By,
		Next: "wait_threads with this thread_id; get_status to look at it",
	}, nil
}

// judge makes an answer of a request that can be carried out.
func (c *Controller) judge(
	ctx context.Context, rec thread.Record, q thread.Question, req ApproveRequest,
) (thread.Answer, error) {
	answer := thread.Answer{Decision: req.Decision, By: req.By, At: c.Threads.Now()}
	if !slices.Contains(q.Options, req.Decision) {
		return answer, tool.Faultf(tool.CodeBadArguments, "thread %s cannot be told to %s now; valid are %s",
			rec.ThreadID, req.Decision, decisions(q.Options)).With("valid_decisions", q.Options)
	}
	if req.Decision != thread.Raise && len(req.Limits) > 0 {
		return answer, tool.Faultf(tool.CodeBadArguments, "limits are part of raise, and not of %s", req.Decision)
	}
	if err := judgeSummary(q, req); err != nil || req.Decision != thread.Raise {
		answer.Summary = req.Summary
		return answer, err
	}
	values, err := limit.ParseOverrides(req.Limits)
	if err != nil {
		return answer, threads.Fault(err)
	}
	from := bounds.Source{Ledger: c.Threads.Store, Records: c.Threads.Records}
	most, err := from.Most(ctx, *q.Limits, rec.ParentID)
	if err != nil {
		return answer, threads.Fault(err)
	}
	if most == nil && !req.Person {
		if most, err = mostByCall(c.Settings.Begin(), *q.Limits); err != nil {
			return answer, threads.Fault(err)
		}
	}
	over := &thread.LimitError{Code: q.Code, Value: q.Reached}
	if _, err := limit.Raise(*q.Limits, values, most, over); err != nil {
		f := tool.Faultf(tool.CodeInvalidLimits, "the limits of thread %s cannot be raised so: %w", rec.ThreadID, err).
			With("limits", limit.Set(*q.Limits)).With("valid_limits", item.LimitNames()).
			WithHint("%sgive %s a value above %s", besides(err, over), limit.Name(over), q.Reached)
		if most != nil {
			f = f.With("most", limit.Set(*most))
		}
		return answer, f
	}
	answer.Limits = values
	return answer, nil
}

// decisions are those that can be made, in words.
func decisions(options []thread.Decision) string {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = string(o)
	}
	return strings.Join(words, ", ")
}

// besides says what to do about a value that is wrong, of another limit than the one that
// was hit.
func besides(err error, over *thread.LimitError) string {
	wrong, is := errors.AsType[*limit.ValueError](err)
	if !is || wrong.Name == limit.Name(over) {
		return ""
	}
	return "leave " + wrong.Name + " out, or keep to what it can be; "
}

// judgeSummary refuses a summary that no successor is given.
func judgeSummary(q thread.Question, req ApproveRequest) error {
	switch {
	case req.Summary == "":
		return nil
	case q.Kind != thread.AskHandoff || req.Decision != thread.Accept:
		return tool.Faultf(tool.CodeBadArguments, "summary is part of accept, of a thread that asks whether it may hand over")
	}
	if err := thread.CheckSummary(req.Summary); err != nil {
		return tool.Faultf(tool.CodeBadArguments, "%w", err)
	}
	return nil
}

// mostByCall is what a call may raise the limits of a root to, by the person's own
// settings.
func mostByCall(now *settings.Call, limits thread.Limits) (*thread.Limits, error) {
	set, _, err := now.Config.Resilience()
	if err != nil {
		return nil, err
	}
	most, err := limit.Resolve(limit.Valid(limit.Set(limits), set.MaxOverride), nil, nil, nil)
	return &most, err
}

// answerFault tells that somebody was faster.
func answerFault(err error) error {
	if late, ok := errors.AsType[*store.AnsweredError](err); ok {
		return tool.Faultf(tool.CodeUnsupported, "%w", late).
			With("decision", late.Question.Answer.Decision).With("answered_by", late.Question.Answer.By).
			WithHint("get_status tells how the thread goes on").WithTry("rye-mcp threads show %s", late.Question.ThreadID)
	}
	return threads.Fault(err)
}
