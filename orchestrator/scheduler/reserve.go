package scheduler

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/runtime/daily"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Reserve gives the thread its budget: a root's own, a child's out of what its
// parent has left.
func (c *Call) Reserve(ctx context.Context, p *plan.Plan, id thread.ID) error {
	ctx = daily.Under(ctx, c.Config)
	if p.Parent == nil {
		return c.openRoot(ctx, p, id)
	}
	reserve := c.Threads.Store.Reserve
	if p.Late() {
		reserve = c.Threads.Store.ReserveAfter
		if err := c.leaveHalf(ctx, p); err != nil {
			return err
		}
	}
	err := reserve(ctx, id, p.Request.Parent, p.Limits.Spend, c.Threads.Now())
	// A limit nobody asked for shrinks to what is left; siblings that reserve at
	// the same moment may take it first, so look again a few times.
	var short *store.InsufficientError
	for try := 0; try < 3 && !p.SpendAsked && errors.As(err, &short) && short.Remaining > 0; try++ {
		p.Limits.Spend = short.Remaining
		err = reserve(ctx, id, p.Request.Parent, p.Limits.Spend, c.Threads.Now())
	}
	return err
}

// openRoot gives a root its budget. A limit nobody asked for shrinks to what is left
// of the day.
func (c *Scheduler) openRoot(ctx context.Context, p *plan.Plan, id thread.ID) error {
	err := c.Threads.Store.OpenRoot(ctx, id, p.Limits.Spend, c.Threads.Now())
	var short *daily.ExceededError
	for try := 0; try < 3 && !p.SpendAsked && errors.As(err, &short) && short.Left > 0; try++ {
		p.Limits.Spend = short.Left
		err = c.Threads.Store.OpenRoot(ctx, id, p.Limits.Spend, c.Threads.Now())
	}
	return err
}

// leaveHalf bounds what is started by the last hooks of a thread, and has no limit
// of its own, to half of what that had left: the rest has gone back to whoever is
// above, who still works and counts on it.
func (c *Scheduler) leaveHalf(ctx context.Context, p *plan.Plan) error {
	left, err := c.Threads.Store.Budget(ctx, p.Request.Parent)
	if err != nil || p.SpendAsked {
		return err
	}
	p.Limits.Spend = min(p.Limits.Spend, max(0, left.Remaining()/2))
	return nil
}
