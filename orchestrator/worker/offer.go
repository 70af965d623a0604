package worker

import (
	"context"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
)

// has is what the worker has for its projects now.
func (w *Worker) has(ctx context.Context) fleet.Offer {
	now := fleet.Offer{Able: map[string][]string{}}
	for _, p := range w.Projects {
		if p.Has == nil {
			return w.Self.Offer
		}
		accepted, able := p.Has(ctx)
		now.Settings = append(now.Settings, accepted)
		now.Able[p.Name] = able
	}
	return now
}

// keepOffer says in the fleet what the worker has, whenever that changes: settings are edited
// and accepted, and providers on its machine come and go.
func (w *Worker) keepOffer(ctx context.Context, lease *fleet.Lease) {
	tick := time.NewTicker(w.Fleet.Renewal())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := w.has(ctx)
		w.mu.Lock()
		changed := !now.Equal(w.offer)
		w.mu.Unlock()
		if !changed {
			continue
		}
		if err := lease.Tell(ctx, now); err != nil {
			if ctx.Err() == nil {
				w.Log.Warn().Err(err).Msg("cannot say what this worker has")
			}
			continue
		}
		w.mu.Lock()
		w.offer = now
		w.mu.Unlock()
	}
}

// CanUse reports whether the worker has said that it can use a provider for a project: what
// it takes is what others are told.
func (w *Worker) CanUse(project, provider string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.offer.Able[project], provider)
}
