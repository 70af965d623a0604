package control

import (
	"context"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// tells reports whether there is a question of a child that its parent, which
// waits, has not been told of. The children of those that it continues are its
// own.
func (c *Controller) tells(
	ctx context.Context, parent thread.ID, rows map[thread.ID]thread.Record, waiting []view.Waiting,
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
			if !threads.InChain(chain, rec.ParentID) {
				continue
			}
			if asks, err := c.asksFor(ctx, w, rec); !asks || err != nil {
				if err != nil {
					return false, err
				}
				continue
			}
			_, before := c.told.LoadOrStore(w.QuestionID, true)
			news = news || !before
		}
	}
	return news, nil
}

// interruptedNext is what the answer to a wait begins with that an instruction has ended.
const interruptedNext = "The wait was ended by a message to you, which follows. "

// steered reports whether there is an instruction for a thread that waits, which it has
// not read: it is to read it now.
func (c *Controller) steered(ctx context.Context, waits thread.ID) (bool, error) {
	if waits == "" {
		return false, nil
	}
	rec, err := c.Threads.Store.Get(ctx, waits)
	if err != nil || rec.Unread == 0 {
		return false, err
	}
	unread, err := c.Threads.Store.Unread(ctx, waits)
	return slices.ContainsFunc(unread, func(m thread.Message) bool { return m.Kind == thread.Steer }), err
}

// asksFor reports whether a question is that of a thread, or of an entry of a set.
func (c *Controller) asksFor(ctx context.Context, w view.Waiting, rec thread.Record) (bool, error) {
	if rec.Kind != thread.KindSet {
		return w.ThreadID == rec.ThreadID, nil
	}
	asks, err := c.Threads.Store.Get(ctx, w.ThreadID)
	return asks.ParentID == rec.ThreadID, err
}

// onlyAsks reports whether a wait is over because everything that is pending waits
// for an answer that nobody is being asked for: the caller is told the questions.
// One that knows them and asks for time waits for the answers of others.
func (c *Controller) onlyAsks(
	ctx context.Context, req WaitRequest, rows map[thread.ID]thread.Record, waiting []view.Waiting, asking *asking,
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
func (c *Controller) isBlocked(ctx context.Context, rec thread.Record, waiting []view.Waiting) (bool, error) {
	if slices.ContainsFunc(waiting, func(w view.Waiting) bool { return w.ThreadID == rec.ThreadID }) {
		return true, nil
	}
	if rec.Kind != thread.KindSet && (!rec.Yielded || c.mayDecide(rec.ThreadID)) {
		return false, nil
	}
	below, _, err := c.Threads.Store.List(ctx, store.Filter{ParentID: rec.ThreadID, States: []thread.State{thread.Created, thread.Running}})
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
