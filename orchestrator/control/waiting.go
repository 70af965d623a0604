package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
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

// waitingBelow lists the open questions of threads and of all below them.
func (c *Controller) waitingBelow(ctx context.Context, ids ...thread.ID) ([]Waiting, error) {
	asked := func(id thread.ID) bool { return slices.Contains(ids, id) }
	return c.waiting(ctx, func(q thread.Question) (bool, error) {
		if asked(q.ThreadID) {
			return true, nil
		}
		return lineage.IsBelowAny(q.ThreadID, asked, c.Threads.Getter(ctx))
	})
}

// waiting lists the open questions that are wanted, those of dead threads left
// out. When ctx ends the error is its cause.
func (c *Controller) waiting(ctx context.Context, want func(thread.Question) (bool, error)) ([]Waiting, error) {
	open, err := c.Store.Questions(ctx, store.QuestionFilter{Open: true})
	list := []Waiting{}
	for _, q := range open {
		var asks bool
		if asks, err = c.asks(ctx, q, want); err != nil {
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
func (c *Controller) asks(ctx context.Context, q thread.Question, want func(thread.Question) (bool, error)) (bool, error) {
	wanted, err := want(q)
	if err != nil || !wanted {
		return false, err
	}
	rec, err := c.Threads.Look(ctx, q.ThreadID)
	return !rec.Status.Terminal(), err
}

// waitingFor is waitingBelow for threads that were looked at.
func (c *Controller) waitingFor(ctx context.Context, rows map[thread.ID]thread.Record) ([]Waiting, error) {
	var ids []thread.ID
	for _, rec := range rows {
		if rec.Status == thread.Running {
			ids = append(ids, rec.ThreadID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return c.waitingBelow(ctx, ids...)
}

// tells reports whether there is a question of a child that its parent, which
// waits, has not been told of. The children of those that it carries on are its
// own.
func (c *Controller) tells(
	ctx context.Context, parent thread.ID, rows map[thread.ID]thread.Record, waiting []Waiting,
) (news bool, err error) {
	if parent == "" || len(waiting) == 0 {
		return false, nil
	}
	chain, err := lineage.Chain(parent, c.Threads.Getter(ctx))
	if err != nil {
		return false, err
	}
	for _, rec := range rows {
		for _, w := range waiting {
			if !threads.InChain(chain, rec.ParentID) || w.ThreadID != rec.ThreadID {
				continue
			}
			_, before := c.told.LoadOrStore(w.QuestionID, true)
			news = news || !before
		}
	}
	return news, nil
}

// onlyAsks reports whether a wait is over because everything that is pending waits
// for an answer that nobody is being asked for: the caller is told the questions.
// One that knows them and asks for time waits for the answers of others.
func (c *Controller) onlyAsks(
	ctx context.Context, req WaitRequest, rows map[thread.ID]thread.Record, waiting []Waiting, asking *asking,
) (bool, error) {
	if req.Caller == "" || len(waiting) == 0 || asking.goesOn(waiting) {
		return false, nil
	}
	for _, rec := range rows {
		if rec.Status.Terminal() {
			continue
		}
		if blocked, err := c.isBlocked(ctx, rec, waiting); !blocked || err != nil {
			return false, err
		}
	}
	news := false
	for _, w := range waiting {
		_, before := c.told.LoadOrStore(req.Caller+" "+w.QuestionID, true)
		news = news || !before
	}
	return news || !req.Patient, nil
}

// isBlocked reports whether a thread cannot go on without an answer of somebody
// else: it asks, or it waits for others none of which can, and about which it cannot
// decide itself.
func (c *Controller) isBlocked(ctx context.Context, rec thread.Record, waiting []Waiting) (bool, error) {
	if slices.ContainsFunc(waiting, func(w Waiting) bool { return w.ThreadID == rec.ThreadID }) {
		return true, nil
	}
	if !rec.Yielded || c.mayDecide(rec.ThreadID) {
		return false, nil
	}
	below, _, err := c.Store.List(ctx, store.Filter{ParentID: rec.ThreadID, States: []thread.State{thread.Created, thread.Running}})
	if err != nil || len(below) == 0 {
		return false, err
	}
	for _, child := range below {
		if blocked, err := c.isBlocked(ctx, child, waiting); !blocked || err != nil {
			return false, err
		}
	}
	return true, nil
}

// mayDecide reports whether a thread is told of the questions below it, and can
// answer them. One whose record cannot be read may.
func (c *Controller) mayDecide(id thread.ID) bool {
	meta, err := c.Threads.OwnMeta(id)
	if err != nil {
		return true
	}
	grant := permission.Grant{Own: meta.Own(), Ceiling: meta.Ceiling}
	return grant.Allows(permission.Required(permission.Execute, item.Tool, action.OrchestratorID))
}

func waitingNext(waiting []Waiting) string {
	return fmt.Sprintf("thread %s waits to be told what to do: %s; or call wait_threads with a timeout, which leaves it to the person and to others",
		waiting[0].ThreadID, waiting[0].Answer)
}
