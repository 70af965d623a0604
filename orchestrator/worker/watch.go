package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// heedEvery is how often a worker looks for cancels without having been woken.
const heedEvery = time.Second

// heed stops the threads of this worker whose cancel somebody puts on record, wherever that
// is.
func (w *Worker) heed(ctx context.Context, p *Project, lease *fleet.Lease) {
	changes := p.Threads.Store.Milestones(ctx)
	tick := time.NewTicker(heedEvery)
	defer tick.Stop()
	var stopping sync.Map // thread ids
	var stops sync.WaitGroup
	defer stops.Wait()
	for {
		held, err := p.Held(ctx, lease.Incarnation)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("cannot look for cancels")
		}
		if err == nil {
			p.remember(held)
		}
		for _, t := range held {
			if !t.Cancelled {
				continue
			}
			if _, already := stopping.LoadOrStore(t.ID, true); already {
				continue
			}
			stops.Go(func() {
				defer stopping.Delete(t.ID)
				w.stop(ctx, p, t.ID)
			})
		}
		select {
		case _, open := <-changes:
			if !open {
				return
			}
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// remember keeps which threads live by the lease, for when the store cannot be asked.
func (p *Project) remember(held []fleet.Thread) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = p.seen[:0:0]
	for _, t := range held {
		p.seen = append(p.seen, t.ID)
	}
}

// known are the threads that were seen at the last look, and those that this process has
// started since.
func (p *Project) known() []thread.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Concat(p.seen, p.Threads.Children())
}

// stop runs the ladder on one thread.
func (w *Worker) stop(ctx context.Context, p *Project, id thread.ID) {
	receipt, err := p.Stop.Here(context.WithoutCancel(ctx), id)
	if err != nil {
		w.Log.Error().Err(err).Str("thread_id", string(id)).Msg("could not stop a thread whose cancel is on record")
		return
	}
	w.Log.Info().Str("thread_id", string(id)).Str("how", receipt.How).Str("error", receipt.Error).Msg("stopped a thread whose cancel is on record")
}

// watchLeases settles threads as soon as a lease is seen to have run out, those of the
// worker's former leases first.
func (w *Worker) watchLeases(ctx context.Context, own *fleet.Lease) {
	tick := time.NewTicker(w.Fleet.Renewal())
	defer tick.Stop()
	seen := leases{own: own.Incarnation}
	for {
		w.knows(ctx)
		now, err := w.Fleet.Leases(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("cannot look at the leases of others")
		}
		if err == nil && seen.look(now) {
			seen.done(w.sweep(ctx))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// SweepProject does the periodic work of a project: dead threads are settled, expired rows
// go.
func (w *Worker) SweepProject(ctx context.Context, p *Project) error {
	_, dead := p.Threads.Sweep(ctx)
	_, _, expired := p.Tidy.Sweep(ctx)
	return errors.Join(dead, expired)
}

// sweep settles the threads of the projects that nobody runs any more. It returns whether it
// could look at all of them.
func (w *Worker) sweep(ctx context.Context) (all bool) {
	all = true
	for _, p := range w.Projects {
		if p.AskAgain != nil {
			p.AskAgain()
		}
		if _, err := p.Threads.Sweep(ctx); err != nil {
			if all = false; ctx.Err() == nil {
				w.Log.Error().Err(err).Str("project", p.Name).Msg("could not settle all threads of leases that have run out")
			}
		}
	}
	return all
}
