package threads

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Fleet is what a process knows of the workers that share its store.
type Fleet interface {
	// NewRun makes a run that names the lease by which it lives.
	NewRun() thread.Run
	// Room reports whether this process may give a thread a slot now: a worker while it has
	// one free, any other process while no worker takes threads of the project. Done is
	// called when the thread has it.
	Room(ctx context.Context) (done func(), ok bool)
	// NoWorker says in a sentence why no worker takes a thread that is queued; empty: one
	// will, or there are no workers and whoever waits for the thread runs it.
	NoWorker(ctx context.Context, rec thread.Record) string
}

// NoWorker is that of the fleet; empty for a thread that is not queued.
func (t *Threads) NoWorker(ctx context.Context, rec thread.Record) string {
	if t.Fleet == nil || !rec.Queued() {
		return ""
	}
	return t.Fleet.NoWorker(ctx, rec)
}

// Room is that of the fleet; without one there is always room.
func (t *Threads) Room(ctx context.Context) (done func(), ok bool) {
	if t.Fleet == nil {
		return func() {}, true
	}
	return t.Fleet.Room(ctx)
}
