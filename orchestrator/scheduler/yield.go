package scheduler

import (
	"context"
	"errors"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// yielding is the slot of the thread that this process belongs to, while it
// waits for other threads: they may need it to run at all, and a tree that is
// deeper than there are slots would wait for ever.
//
// When the last wait is over the thread has its slot back at once and is not
// queued for it, since it has a process already: for as long as others
// run in the slot, more threads run than there are slots.
type yielding struct {
	mu    sync.Mutex
	waits int // in this process
}

// yieldSlot gives the slot away until back is called.
func (c *Scheduler) yieldSlot(ctx context.Context) (back func()) {
	if c.Threads.Parent == "" {
		return func() {}
	}
	ctx = context.WithoutCancel(ctx) // the registry must hear of both
	y := &c.yielding
	y.mu.Lock()
	defer y.mu.Unlock()
	y.waits++
	if y.waits == 1 {
		c.recordYield(ctx, true)
	}
	return func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.waits--
		if y.waits == 0 {
			c.recordYield(ctx, false)
		}
	}
}

// GiveSlot gives the slot of the thread that this process belongs to away, until
// back is called, and lets the next in the queue have it. It is for a thread that only
// waits.
func (c *Scheduler) GiveSlot(ctx context.Context) (back func()) {
	back = c.yieldSlot(ctx)
	c.DispatchAndLog(ctx, false, nil)
	return back
}

// YieldAgain repeats that the slot is given away. Two processes can wait for the
// same thread, its own and one that a tool of it has started; the first whose
// waits are over takes the slot back for both.
func (c *Scheduler) YieldAgain(ctx context.Context) {
	if c.Threads.Parent == "" {
		return
	}
	rec, err := c.Threads.Store.Get(ctx, c.Threads.Parent)
	if err != nil || rec.Yielded || rec.Status != thread.Running {
		return
	}
	c.yielding.mu.Lock()
	defer c.yielding.mu.Unlock()
	if c.yielding.waits > 0 {
		c.recordYield(ctx, true)
	}
}

func (c *Scheduler) recordYield(ctx context.Context, yielded bool) {
	rec, err := c.Threads.Store.Get(ctx, c.Threads.Parent)
	if err == nil {
		err = c.Threads.Store.Runner(rec.ThreadID, rec.Run).Yield(ctx, yielded)
	}
	if err != nil && !errors.Is(err, thread.ErrSettled) && !errors.Is(err, thread.ErrNotFound) {
		c.Threads.Log.Warn().Err(err).Bool("yielded", yielded).Msg("could not record whether the thread only waits")
	}
}

// Waits is how many waits of this process have given the slot away.
func (c *Scheduler) Waits() int {
	c.yielding.mu.Lock()
	defer c.yielding.mu.Unlock()
	return c.yielding.waits
}
