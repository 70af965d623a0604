package threads

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

// ExitWatcher reports the end of processes.
type ExitWatcher struct {
	life life.Life
	ctx  context.Context //nolint:containedctx // lives exactly as long as the wait it belongs to
	// Seen is told when one has ended, and some times more in the moment after.
	Seen chan struct{}

	mu      sync.Mutex
	watched map[int]bool
}

// NewExitWatcher watches processes until ctx ends.
func (t *Threads) NewExitWatcher(ctx context.Context) *ExitWatcher {
	return &ExitWatcher{life: t.Life, ctx: ctx, watched: map[int]bool{}, Seen: make(chan struct{}, 1)}
}

// Watch adds the processes of threads that still work. Of one that another
// container or machine runs, its commits alone tell.
func (w *ExitWatcher) Watch(rows map[thread.ID]thread.Record) {
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

func (w *ExitWatcher) follow(pid int, gone <-chan struct{}) {
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
		case w.Seen <- struct{}{}:
		default: // somebody is about to look anyway
		}
	}
}

// forget lets the number be watched again, as that of another process.
func (w *ExitWatcher) forget(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, pid)
}
