package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Budget is how the money of a thread stands. Amounts are US dollars.
type Budget struct {
	Max       thread.Micros `json:"max" jsonschema:"US dollars the thread and everything below it may cost"`
	Actual    thread.Micros `json:"actual" jsonschema:"US dollars spent by the thread and by children that have ended"`
	Reserved  thread.Micros `json:"reserved" jsonschema:"US dollars held by children that still work"`
	Remaining thread.Micros `json:"remaining" jsonschema:"US dollars the thread may still spend or give to children"`
	TreeSpend thread.Micros `json:"tree_spend" jsonschema:"US dollars spent so far by the thread and everything below it"`
	Threads   int           `json:"threads" jsonschema:"the thread and those below it"`
	Active    int           `json:"active" jsonschema:"how many of those still hold a budget"`
	CanSpawn  bool          `json:"can_spawn" jsonschema:"it may start another child now"`
	WhyNot    string        `json:"why_not,omitempty" jsonschema:"what keeps it from starting one"`
}

// DailySpend is how the money of today stands, of all projects of the user. Amounts
// are US dollars.
type DailySpend struct {
	Limit    thread.Micros `json:"limit" jsonschema:"limits.daily_spend of the user: what all roots of all projects may spend in a day"`
	Spent    thread.Micros `json:"spent" jsonschema:"US dollars spent by roots that have ended today"`
	Held     thread.Micros `json:"held" jsonschema:"US dollars that roots which run may come to"`
	Left     thread.Micros `json:"left" jsonschema:"US dollars that another root may be given today"`
	RenewsAt time.Time     `json:"renews_at" jsonschema:"the next midnight, local time"`
}

// BudgetInput is the input of get_budget.
type BudgetInput struct {
	ThreadID thread.ID      `json:"thread_id" alias:"id,thread,thread_ids"`
	Amount   *thread.Micros `json:"amount,omitempty" minimum:"0" jsonschema:"US dollars a child would be given; without it, any amount"`
}

// BudgetAnswer is the answer to get_budget.
type BudgetAnswer struct {
	Success  bool      `json:"success"`
	ThreadID thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	Budget
	Daily *DailySpend `json:"daily_spend,omitempty" jsonschema:"the money of today, where the user bounds it"`
}

// leastShare is the least that is of use to a child.
const leastShare thread.Micros = 1

// GetBudget tells how the money of a thread stands, and whether it could start a
// child that is given an amount.
func (v *View) GetBudget(ctx context.Context, in BudgetInput) (BudgetAnswer, error) {
	rec, err := v.Threads.LookAsked(ctx, in.ThreadID)
	if err != nil {
		return BudgetAnswer{}, threads.Fault(err)
	}
	amount := leastShare
	if in.Amount != nil {
		amount = *in.Amount
	}
	b, err := v.budgetOf(ctx, rec, amount)
	if err != nil {
		return BudgetAnswer{}, threads.Fault(err)
	}
	if b == nil {
		return BudgetAnswer{}, threads.Fault(fmt.Errorf("thread %s: %w", rec.ThreadID, store.ErrNoBudget))
	}
	answer := BudgetAnswer{Success: true, ThreadID: rec.ThreadID, Budget: *b}
	if v.Daily != nil {
		if answer.Daily, err = v.Daily(ctx); err != nil {
			return BudgetAnswer{}, threads.Fault(err)
		}
	}
	return answer, nil
}

// budgetOf reads the ledger; nil for a thread without a budget. Amount is what a
// child would have to be given.
func (v *View) budgetOf(ctx context.Context, rec thread.Record, amount thread.Micros) (*Budget, error) {
	row, tree, err := v.Threads.Store.Tree(ctx, rec.ThreadID)
	if errors.Is(err, store.ErrNoBudget) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &Budget{
		Max: row.MaxSpend, Actual: row.Actual, Reserved: row.Reserved, Remaining: max(0, row.Remaining()),
		TreeSpend: tree.Actual, Threads: tree.Threads, Active: tree.Active,
	}
	if !row.Active {
		b.Remaining = 0
	}
	b.WhyNot = v.spawnHindrance(rec, b.Remaining, amount)
	b.CanSpawn = b.WhyNot == ""
	return b, nil
}

// spawnHindrance says why a thread could not start a child; empty when it could.
func (v *View) spawnHindrance(rec thread.Record, remaining, amount thread.Micros) string {
	switch {
	case rec.Status != thread.Running:
		return fmt.Sprintf("it is %s", rec.Status)
	case !rec.CancelRequestedAt.IsZero():
		return "it has been asked to stop"
	}
	switch meta, err := v.Threads.Described(rec.ThreadID); {
	case err != nil:
		return "its thread.json cannot be trusted"
	case rec.SpawnCount >= meta.Limits.Spawns:
		return fmt.Sprintf("it has started %d children, as many as it may", rec.SpawnCount)
	case meta.Limits.Depth <= 0:
		return "it may have no level below it"
	case remaining < amount:
		return fmt.Sprintf("it has %s left", remaining)
	}
	return ""
}
