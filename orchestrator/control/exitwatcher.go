package control

import (
	"context"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// nudges are when a wait looks after a process has ended, counted from the look
// before: its life can be held a moment longer, by a process it was just
// starting or by the spawner that is handing it over.
var nudges = [...]time.Duration{0, 2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}

// exitWatcher reports the end of processes.
type exitWatcher struct {
	life life.Life
	ctx  context.Context //nolint:containedctx // lives exactly as long as the wait it belongs to
	seen chan struct{}

	mu      sync.Mutex
	watched map[int]bool
}

func (c *Controller) newExitWatcher(ctx context.Context) *exitWatcher {
	return &exitWatcher{life: c.Life, ctx: ctx, watched: map[int]bool{}, seen: make(chan struct{}, 1)}
}

// near tells whether the number of a thread's process is that process here.
func (c *Controller) near(p thread.Process) bool { return c.Life.Reach(p) == life.Near }

// watch adds the processes of threads that still work. Of one that another
// container or machine runs, its commits alone tell.
func (w *exitWatcher) watch(rows map[thread.ID]thread.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rec := range rows {
		if rec.Status.Terminal() || w.watched[rec.PID] || w.life.Reach(rec.Process) != life.Near {
			continue
		}
		w.watched[rec.PID] = true
		go w.follow(rec.PID, w.life.Watch(w.ctx, rec.Process))
	}
}

func (w *exitWatcher) follow(pid int, gone <-chan struct{}) {
	select {
	case <-gone:
	case <-w.ctx.Done():
		return
	}
	defer w.forget(pid) // not before, or it would be found to have ended again at once
	for _, pause := range nudges {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-w.ctx.Done():
			timer.Stop()
			return
		}
		select {
		case w.seen <- struct{}{}:
		default: // somebody is about to look anyway
		}
	}
}

// forget lets the number be watched again, as that of another process.
func (w *exitWatcher) forget(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, pid)
}
