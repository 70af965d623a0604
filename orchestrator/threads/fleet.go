package threads

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Fleet is what a process knows of the workers that share its store.
type Fleet interface {
	// NewRun makes a run that names the lease by which it lives. Done is called when its life
	// is claimed, or will not be: a lease that no life is claimed by is another run's.
	NewRun() (run thread.Run, done func())
	// Room reports whether this process may give a thread a slot now: a worker while it has
	// one free, any other process while no worker takes threads of the project. Done is
	// called when the thread has it.
	Room(ctx context.Context) (done func(), ok bool)
	// Providers are those that the workers have keys for, or that need none, which take
	// threads of the project; served is false where the machine that starts a thread runs it.
	Providers(ctx context.Context) (able []string, served bool)
	// NoWorker says why no worker takes a thread that is queued, and what to do about it;
	// empty: one will.
	NoWorker(ctx context.Context, rec thread.Record) string
	// Lacks says which of the commits that the workspace of a queued thread builds upon the
	// checkout of this machine lacks; empty: none.
	Lacks(ctx context.Context, commits []string, lacking string)
}

// ErrOtherSettings says that a thread was started with other settings of the project than this
// machine's user has accepted.
var ErrOtherSettings = errors.New("the thread was started with other settings of the project than were accepted here")

// Providers are those of the fleet; without a fleet the machine that starts a thread runs
// it.
func (t *Threads) Providers(ctx context.Context) (able []string, served bool) {
	if t.Fleet == nil {
		return nil, false
	}
	return t.Fleet.Providers(ctx)
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
