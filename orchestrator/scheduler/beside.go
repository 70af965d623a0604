package scheduler

import (
	"context"
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
)

// passes are the looks at the queue that go on beside those who have begun them.
type passes struct {
	make    sync.Once
	until   context.Context //nolint:containedctx // ends when the scheduler is closed
	end     context.CancelFunc
	running sync.WaitGroup
}

func (p *passes) begin() {
	p.make.Do(func() { p.until, p.end = context.WithCancel(context.Background()) })
}

// DispatchBeside is [Scheduler.DispatchAndLog] for callers that do not wait for it: a pass may
// run the command that gives a key, which has half a minute. Done is closed when it is over. It
// goes on when ctx has ended: a pass that takes longer than its caller is there would never end else.
func (c *Scheduler) DispatchBeside(ctx context.Context, mayBeDead bool, exits *threads.ExitWatcher) (done <-chan struct{}) {
	c.passes.begin()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(c.passes.until, cancel) //nolint:contextcheck // of the scheduler, which outlives callers
	over := make(chan struct{})
	c.passes.running.Go(func() {
		defer close(over)
		defer cancel()
		defer stop()
		c.DispatchAndLog(ctx, mayBeDead, exits)
	})
	return over
}

// Close ends the passes of [Scheduler.DispatchBeside]. A thread that one of them has taken is
// started before.
func (c *Scheduler) Close() {
	c.passes.begin()
	c.passes.end()
	c.passes.running.Wait()
}
