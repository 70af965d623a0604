package loop

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// allowance is the most output the next call may produce, so that the largest
// possible cost of the call fits what is left. The tokens limit does not bound
// the last turn, which may be there because of it.
func (r *run) allowance(budget store.Budget) (int, error) { return limit.Allowance(r.nextCall(budget)) }

func (r *run) nextCall(budget store.Budget) limit.AllowanceInput {
	limits := r.meta.Limits
	limits.Spend = max(limits.Spend, budget.MaxSpend)
	if r.last {
		limits.Tokens = math.MaxInt64
	}
	return limit.AllowanceInput{
		Limits:        limits,
		Used:          r.cost,
		Left:          budget.Remaining(),
		Model:         r.model.choice.Model,
		ContextTokens: r.conversation.known,
		NewBytes:      r.newBytes(),
		AtLeast:       r.conversation.carriedUse(r.model.choice.Model),
		Most:          r.conversation.most(r.newBytes()),
		Wanted:        r.cuts.wanted(r.model.choice),
	}
}

// afford is the allowance of a call that is made now. The most that the call can cost
// is pledged: while it is on its way, others can be given the thread's money.
func (r *run) afford(ctx context.Context, budget store.Budget) (allowance int, pledged thread.Micros, err error) {
	for {
		next := r.nextCall(budget)
		allowance, err := limit.Allowance(next)
		if err != nil {
			return 0, 0, err
		}
		cost := min(next.Left, limit.WorstCost(next, allowance))
		if cost <= 0 {
			return allowance, 0, nil
		}
		err = r.Runner.Pledge(ctx, cost, r.Now())
		if short := new(store.InsufficientError); !errors.As(err, &short) {
			return allowance, cost, err
		}
		if budget, err = r.Store.Budget(ctx, r.ID); err != nil { // somebody was given more just now
			return 0, 0, err
		}
	}
}

// newBytes is what the provider has not counted yet: before its first report
// that includes the system prompt and the tools.
func (r *run) newBytes() int64 {
	n := r.conversation.newBytes
	if r.conversation.known > 0 {
		return n
	}
	tools, _ := r.model.toolSize(r.toolset.tools)
	return n + int64(len(r.system)) + tools
}

// charge adds what a call cost to registry and ledger, so that a crash loses
// at most the call in flight. It returns the usage that was charged.
func (r *run) charge(ctx context.Context, c *call) (llm.Usage, error) {
	u := c.bill().Billed()
	spend := r.model.choice.Model.Price.Cost(u)
	if c.absurd { // nobody knows what it cost
		spend = max(spend, c.pledged)
	}
	c.charged = spend
	inContext := r.conversation.known
	used := thread.Cost{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens, Spend: spend,
	}
	if c.err == nil {
		used.Turns = 1
		if u.Reported {
			inContext = u.ContextTokens()
		}
	}
	ctx = context.WithoutCancel(ctx) // money that was spent is recorded whatever happens
	own, err := r.purse.add(ctx, spend)
	r.cost = r.cost.Add(used)
	r.cost.Spend = own // with what its tools have bought
	if err != nil {
		return u, err
	}
	r.Crashpoints.At(CrashLedger)
	if err := r.Runner.RecordCost(ctx, r.cost, inContext); err != nil {
		return u, fmt.Errorf("record cost: %w", err)
	}
	r.Crashpoints.At(CrashRegistry)
	return u, nil
}

// bill is what the call is charged by. One that the provider refused is free, which a
// status of success does not say, whatever was answered with it.
func (c *call) bill() limit.Call {
	sent, whole := c.sent, c.err == nil
	if api, ok := apiError(c.err); ok {
		refused := api.Status != 0 && api.Status/100 != 2
		sent, whole = sent && (!refused || api.MidStream), api.Whole
	}
	bill := limit.Call{
		Input: c.input, Allowance: c.allowance, Sent: sent, Delivered: c.delivered,
		Whole: whole, Usage: c.answer.Usage,
	}
	if c.absurd { // the report is worth nothing, and there may have been a whole answer
		bill.Usage, bill.Whole = llm.Usage{}, true
	}
	return bill
}
