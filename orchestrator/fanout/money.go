package fanout

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// reserve gives a set its money: as much as the call says, else what the threads of all
// waiting entries may spend together, of a parent's money no more than half of what is
// left. It returns what the set has.
func (m *Mapper) reserve(ctx context.Context, now *settings.Call, c *call, id thread.ID) (thread.Micros, error) {
	whole := *c.first()
	each := whole.Limits.Spend
	var total thread.Micros
	for i, e := range c.entries {
		if e.Done == "" {
			total = total.Plus(c.plans[i].Limits.Spend)
		}
	}
	switch {
	case c.MaxSpend != nil:
		total, whole.SpendAsked = min(total, *c.MaxSpend), true
	case whole.Parent != nil:
		left, err := m.Threads.Store.Budget(ctx, whole.Request.Parent)
		if err != nil {
			return 0, err
		}
		total = min(total, max(each, left.Remaining()/2))
		whole.SpendAsked = whole.SpendAsked && total <= each
	default:
		whole.SpendAsked = false
	}
	whole.Limits.Spend = total
	err := m.Queue.In(now).Reserve(ctx, &whole, id)
	return whole.Limits.Spend, err
}

// Money for an entry.
const (
	moneyThere  = iota // the plan's limit fits
	moneyLater         // the rest does not do now; entries that work may give some back
	moneyNoMore        // the rest will not do
)

// fit fits the limit of an entry to what its set has left: one that the directive asks
// for is kept or waited for; another is an equal share for all entries that wait.
func fit(p *plan.Plan, left thread.Micros, set store.Set) int {
	if !p.SpendAsked {
		p.Limits.Spend = min(p.Limits.Spend, left/thread.Micros(max(1, set.Waiting)))
	}
	switch {
	case p.Limits.Spend > 0 && p.Limits.Spend <= left:
		return moneyThere
	case set.Working > 0:
		return moneyLater
	}
	return moneyNoMore
}
