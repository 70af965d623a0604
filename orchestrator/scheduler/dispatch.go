package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// dispatchEvery is how often a dispatcher looks at the queue without having been
// woken. Commits and deaths wake it, but a thread whose lock a stranger holds for
// a moment, a raised max_running and a process that dies where nothing watches
// make no event.
const dispatchEvery = 2 * time.Second

// Run keeps the queue of the project moving until ctx ends. Servers run
// one for each project they have open.
func (c *Scheduler) Run(ctx context.Context) {
	changes := c.Threads.Store.Milestones(ctx)
	exits := c.Threads.NewExitWatcher(ctx)
	tick := time.NewTicker(dispatchEvery)
	defer tick.Stop()
	mayBeDead := true
	for {
		c.DispatchAndLog(ctx, mayBeDead, exits)
		mayBeDead = true
		select {
		case _, open := <-changes:
			if !open {
				return
			}
			mayBeDead = false // there are many
		case <-c.wakes.channel():
			mayBeDead = false
		case <-exits.Seen:
		case <-tick.C:
		case <-c.UntilRetry():
		case <-ctx.Done():
			return
		}
	}
}

// wakes are what [Scheduler.Wake] says: one that comes during a look makes another one.
type wakes struct {
	make sync.Once
	c    chan struct{}
}

func (w *wakes) channel() chan struct{} {
	w.make.Do(func() { w.c = make(chan struct{}, 1) })
	return w.c
}

// Wake has [Scheduler.Run] look at the queue now.
func (c *Scheduler) Wake() {
	select {
	case c.wakes.channel() <- struct{}{}:
	default: // it is about to
	}
}

// DispatchAndLog is [Scheduler.Dispatch] for callers that have nobody to tell of its
// failure, and that come again. When threads that have a slot may be dead, they
// are looked at first: all of them when their slots are needed, else those whose
// process was never started, which must be again. Exits, where given, then
// reports the end of the others.
func (c *Scheduler) DispatchAndLog(ctx context.Context, mayBeDead bool, exits *threads.ExitWatcher) {
	err := func() error {
		load, err := c.Threads.Store.QueueLoad(ctx)
		if err != nil {
			return err
		}
		if mayBeDead && load.Occupied > 0 {
			full := load.Queued > 0 && load.Occupied >= c.begin().Slots()
			if err := c.examineOccupants(ctx, full, exits); err != nil {
				return err
			}
			return c.Dispatch(ctx)
		}
		return c.dispatch(ctx, load)
	}()
	if err != nil && ctx.Err() == nil {
		c.complain("", err, "could not start threads that are queued")
	}
}

// examineOccupants settles the threads that have a slot and no process: all of
// them, or those only that never had one.
func (c *Scheduler) examineOccupants(ctx context.Context, all bool, exits *threads.ExitWatcher) error {
	rows, err := c.Threads.Store.Occupants(ctx)
	if err != nil {
		return err
	}
	alive := make(map[thread.ID]thread.Record, len(rows))
	for _, rec := range rows {
		if !all && (rec.Status != thread.Created || rec.PID != 0) {
			continue
		}
		now, err := c.Threads.Sweeper.Examine(ctx, rec)
		if thread.WasDeleted(err, rec.ThreadID) { // and has no slot any more
			continue
		}
		if err != nil {
			// It keeps its slot, and the others must not suffer for it.
			c.complain(rec.ThreadID, err, "could not settle a thread whose process is gone")
			continue
		}
		alive[rec.ThreadID] = now
	}
	if exits != nil {
		exits.Watch(alive)
	}
	return nil
}

// complain logs what is wrong with a thread, or with the queue where id is empty.
func (c *Scheduler) complain(id thread.ID, err error, message string) {
	c.note(zerolog.ErrorLevel, id, err, message)
}

// note logs something of a thread. The queue is looked at after every commit, so what does not
// change is said once.
func (c *Scheduler) note(level zerolog.Level, id thread.ID, err error, message string) {
	if before, _ := c.complaints.Swap(id, err.Error()); before != err.Error() {
		c.Threads.Log.WithLevel(level).Err(err).Str("thread_id", string(id)).Msg(message)
	}
}
