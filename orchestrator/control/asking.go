package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxAsked is how often a person is asked the same who gives an answer that
// cannot be carried out.
const maxAsked = 3

// asking puts the questions of threads to the person behind a wait for them,
// while that goes on.
type asking struct {
	*Controller
	request WaitRequest
	failed  chan error    // what the wait ends with
	left    chan struct{} // told when the person has left a question to others
	asked   map[string]context.CancelCauseFunc
	group   sync.WaitGroup

	mu    sync.Mutex
	leave map[string]bool // questions that the person has left to others
}

// errAnswered withdraws a question that somebody else has answered.
var errAnswered = errors.New("the question has been answered elsewhere")

func (c *Controller) newAsking(req WaitRequest) *asking {
	return &asking{
		Controller: c, request: req, failed: make(chan error, 1), left: make(chan struct{}, 1),
		asked: map[string]context.CancelCauseFunc{}, leave: map[string]bool{},
	}
}

// look asks what is not asked yet, withdraws what is answered, and returns what
// is open.
func (a *asking) look(ctx context.Context, rows map[thread.ID]thread.Record) ([]view.Waiting, error) {
	open, err := a.View.WaitingFor(ctx, rows)
	if err != nil || a.request.Ask == nil {
		return open, err
	}
	still := map[string]bool{}
	for _, w := range open {
		still[w.QuestionID] = true
		if a.asked[w.QuestionID] == nil {
			asking, withdraw := context.WithCancelCause(ctx)
			a.asked[w.QuestionID] = withdraw
			a.group.Go(func() {
				if a.put(asking, w) {
					a.leaveTo(w.QuestionID)
				}
			})
		}
	}
	for id, withdraw := range a.asked {
		if !still[id] {
			withdraw(errAnswered)
		}
	}
	return open, nil
}

// put asks the person until there is an answer that can be carried out. Without
// one the question is left to others, and to its deadline. It reports false where
// the person is asked by the answer that ends the wait.
func (a *asking) put(ctx context.Context, w view.Waiting) bool {
	q, err := a.Threads.Store.Question(ctx, w.QuestionID)
	text := q.Text
	for try := 0; err == nil && try < maxAsked; try++ {
		var answer thread.Answer
		if answer, err = a.request.Ask(ctx, q); err != nil {
			break
		}
		// An answer that was given is carried out, though the wait may be over.
		_, err := a.Approve(context.WithoutCancel(ctx), ApproveRequest{Person: true, ThreadID: q.ThreadID, Decision: answer.Decision, Limits: answer.Limits, Summary: answer.Summary, By: answer.By})
		if refused, ok := errors.AsType[*tool.Fault](err); !ok || refused.Code != tool.CodeInvalidLimits && refused.Code != tool.CodeBadArguments {
			break
		}
		q.Text = fmt.Sprintf("That cannot be done: %v. %s", err, text)
	}
	if errors.Is(err, action.ErrCallAgain) {
		select {
		case a.failed <- err:
		default: // another question ends the wait already
		}
		return false
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, action.ErrNobodyToAsk) {
		a.Threads.Log.Warn().Err(err).Str("thread_id", string(w.ThreadID)).Msg("could not ask the person")
	}
	return true
}

// leaveTo records that the person is no longer asked a question.
func (a *asking) leaveTo(id string) {
	a.mu.Lock()
	a.leave[id] = true
	a.mu.Unlock()
	select {
	case a.left <- struct{}{}:
	default: // somebody is about to look anyway
	}
}

// goesOn reports whether the person is being asked one of the questions.
func (a *asking) goesOn(waiting []view.Waiting) bool {
	if a.request.Ask == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(waiting, func(w view.Waiting) bool { return !a.leave[w.QuestionID] })
}

// end withdraws what is still asked.
func (a *asking) end() {
	for _, withdraw := range a.asked {
		withdraw(context.Canceled)
	}
	a.group.Wait()
}
