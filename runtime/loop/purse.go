package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// purse is the money of a thread: what its calls of the model have cost, and what its
// tools buy at the same time. It alone reports to the ledger, so that the total only
// grows.
type purse struct {
	*run

	mu         sync.Mutex
	own        thread.Micros // spent by the thread itself so far
	held       thread.Micros // for purchases that are not settled
	unrecorded thread.Micros // bought, and not in the transcript yet
	ended      bool          // the thread has; its last hooks buy now
}

// begin takes over what the thread has spent before.
func (p *purse) begin(own thread.Micros) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = own
}

// add reports the cost of a call of the model, and returns what the thread has spent.
func (p *purse) add(ctx context.Context, spend thread.Micros) (thread.Micros, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = p.own.Plus(spend)
	return p.own, p.report(ctx)
}

// report tells the ledger. The caller has the lock.
func (p *purse) report(ctx context.Context) error {
	if err := p.Runner.Report(ctx, p.own, p.Now()); err != nil && !errors.Is(err, store.ErrNoBudget) {
		return fmt.Errorf("report spend: %w", err)
	}
	return nil
}

// record is what was bought since the last event that says so.
func (p *purse) record() thread.Micros {
	p.mu.Lock()
	defer p.mu.Unlock()
	bought := p.unrecorded
	p.unrecorded = 0
	return bought
}

// close ends the thread's own spending, and returns what it came to. A purchase of a
// call that was left behind counts as the most it can be: nobody will hear of it.
func (p *purse) close() thread.Micros {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.own, p.ended = p.own.Plus(p.held), true
	}
	return p.own
}

// Hold implements [tool.Purse].
func (p *purse) Hold(ctx context.Context, most thread.Micros) (func(thread.Micros) error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return p.after(ctx, most)
	}
	if err := p.Runner.Pledge(ctx, p.held.Plus(most), p.Now()); err != nil {
		return nil, tooDear(most, err)
	}
	p.held = p.held.Plus(most)
	return func(cost thread.Micros) error { return p.settle(context.WithoutCancel(ctx), most, cost) }, nil
}

// settle ends a purchase.
func (p *purse) settle(ctx context.Context, most, cost thread.Micros) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended { // it was counted when the thread ended
		return nil
	}
	// Money that was spent is recorded whatever happens.
	p.held -= most
	p.own, p.unrecorded = p.own.Plus(cost), p.unrecorded.Plus(cost)
	if err := p.report(ctx); err != nil || p.held == 0 {
		return err
	}
	return p.Runner.Pledge(ctx, p.held, p.Now()) // a report ends the pledge of the others
}

// after holds money for the last hooks of a thread that has ended: it comes out of what
// the thread had left, and counts at once with those above it. The unspent rest is
// given back.
func (p *purse) after(ctx context.Context, most thread.Micros) (func(thread.Micros) error, error) {
	if err := p.Store.SpendAfter(ctx, p.ID, most, p.Now()); err != nil {
		return nil, tooDear(most, err)
	}
	return func(cost thread.Micros) error {
		return p.Store.SpendAfter(context.WithoutCancel(ctx), p.ID, cost-most, p.Now())
	}, nil
}

// tooDear is the refusal of a purchase for a model.
func tooDear(most thread.Micros, err error) error {
	short := new(store.InsufficientError)
	switch {
	case errors.As(err, &short):
		return tool.Faultf(tool.CodeBudgetExhausted, "it may cost up to %s, and the thread has %s left", most, max(0, short.Remaining)).
			WithHint("go on without it, or return what you have")
	case errors.Is(err, store.ErrNoBudget):
		return tool.Faultf(tool.CodeBudgetExhausted, "it may cost up to %s, and the thread has no budget", most)
	}
	return err
}
