package loop

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// allowance is the most output the next call may produce, so that the largest
// possible cost of the call fits what is left. The tokens limit does not bound
// the last turn, which may be there because of it.
func (r *run) allowance(budget store.Budget) (int, error) { return limit.Allowance(r.nextCall(budget)) }

func (r *run) nextCall(budget store.Budget) limit.AllowanceInput {
	limits := r.meta.Limits
	if r.last {
		limits.Tokens = math.MaxInt64
	}
	return limit.AllowanceInput{
		Limits:        limits,
		Used:          r.cost,
		Left:          budget.Remaining(),
		Model:         r.model.choice.Model,
		ContextTokens: r.talk.known,
		NewBytes:      r.newBytes(),
		Wanted:        r.model.choice.MaxOutput,
	}
}

// afford is the allowance of a call that is made now. What the call can cost is
// pledged: while it is on its way, others can be given the thread's money.
func (r *run) afford(ctx context.Context, budget store.Budget) (int, error) {
	for {
		next := r.nextCall(budget)
		allowance, err := limit.Allowance(next)
		if err != nil {
			return 0, err
		}
		cost := min(next.Left, limit.WorstCost(next, allowance))
		if cost <= 0 {
			return allowance, nil
		}
		err = r.Store.Pledge(ctx, r.ID, cost, r.Now())
		if short := new(store.InsufficientError); !errors.As(err, &short) {
			return allowance, err
		}
		if budget, err = r.Store.Budget(ctx, r.ID); err != nil { // somebody was given more just now
			return 0, err
		}
	}
}

// newBytes is what the provider has not counted yet: before its first report
// that includes the system prompt and the tools.
func (r *run) newBytes() int64 {
	n := r.talk.newBytes
	if r.talk.known > 0 {
		return n
	}
	n += int64(len(r.system) + len(r.model.toolText))
	if r.model.toolText != "" {
		return n
	}
	for _, t := range r.offer.tools {
		n += sizeOfTool(t)
	}
	return n
}

// toolMarks is more than the tokens that a provider puts around a tool.
const toolMarks = 64

func sizeOfTool(t llm.Tool) int64 {
	return int64(toolMarks + len(t.Name) + len(t.Description) + len(t.Schema))
}

// charge adds what a call cost to registry and ledger, so that a crash loses
// at most the call in flight. It returns the usage that was charged.
func (r *run) charge(ctx context.Context, c call) (llm.Usage, error) {
	u := r.billed(c)
	inContext := r.talk.known
	if c.err == nil {
		r.cost.Turns++
		inContext = u.ContextTokens()
	}
	r.cost.InputTokens += u.InputTokens
	r.cost.OutputTokens += u.OutputTokens
	r.cost.CacheReadTokens += u.CacheReadTokens
	r.cost.CacheWriteTokens += u.CacheWriteTokens
	r.cost.Spend += r.model.choice.Model.Price.Cost(u)

	ctx = context.WithoutCancel(ctx) // money that was spent is recorded whatever happens
	if err := r.Store.Report(ctx, r.ID, r.cost.Spend, r.Now()); err != nil && !errors.Is(err, store.ErrNoBudget) {
		return u, fmt.Errorf("report spend: %w", err)
	}
	r.Reached.At(StepLedger)
	if err := r.Store.RecordCost(ctx, r.ID, r.cost, inContext); err != nil {
		return u, fmt.Errorf("record cost: %w", err)
	}
	r.Reached.At(StepRegistry)
	return u, nil
}

// billed is the usage a call is charged for: what the provider reported, and
// the worst where it reported nothing. For a call that failed the last report
// may be older than what arrived since, so that counts as well, every byte a
// token: no tokeniser makes more of it. A call of which nothing had arrived is
// free.
func (r *run) billed(c call) llm.Usage {
	u := c.answer.Usage
	u.Reported = u.Reported && u.ContextTokens() > 0 // some servers report zeros for what they do not count
	var api *llm.APIError
	begun := u.Reported || c.bytes > 0 || c.toolCalls || errors.As(c.err, &api) && api.MidStream
	if c.err != nil && !begun {
		return llm.Usage{}
	}
	if !u.Reported {
		u.InputTokens = r.talk.known + r.newBytes()
	}
	most := int64(c.allowance)
	switch {
	case c.err == nil && u.Reported:
	case c.err == nil, c.toolCalls:
		u.OutputTokens = max(u.OutputTokens, most)
	default:
		u.OutputTokens = max(u.OutputTokens, min(c.bytes, most))
	}
	return u
}
