package worker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// patient decides who of several workers waits for what is to be tried again later.
type patient struct {
	own    thread.Incarnation
	leases map[thread.Incarnation]time.Time // of all at the first look that somebody was waited for
}

// leavesTo reports whether another worker waits for a thread: it can run it, has joined
// earlier, and has renewed its lease since it was first seen. A lease alone can be that of one
// that was killed.
func (p *patient) leavesTo(workers []fleet.Seen, project string, rec thread.Record) bool {
	if p.leases == nil {
		p.leases = map[thread.Incarnation]time.Time{}
	}
	provider, _, _ := strings.Cut(rec.Model, "/")
	self := slices.IndexFunc(workers, func(w fleet.Seen) bool { return w.Incarnation == p.own })
	if self < 0 {
		return false
	}
	earlier := func(w fleet.Seen) bool {
		if !w.StartedAt.Equal(workers[self].StartedAt) {
			return w.StartedAt.Before(workers[self].StartedAt)
		}
		return w.Name < workers[self].Name
	}
	return slices.ContainsFunc(workers, func(w fleet.Seen) bool {
		if !w.Alive || w.Draining || !slices.Contains(w.Projects, project) || !earlier(w) {
			return false
		}
		first, known := p.leases[w.Incarnation]
		if !known {
			p.leases[w.Incarnation] = w.LeaseUntil
		}
		return known && w.LeaseUntil.After(first) && (rec.Kind == thread.KindTool || slices.Contains(w.Able[project], provider))
	})
}

// awaitsRetry reports whether a thread is to be tried again, now or later, that this worker can
// run and leaves to no other, or that cannot be told.
func (w *Worker) awaitsRetry(ctx context.Context, p *patient) bool {
	for _, of := range w.Projects {
		retries, err := of.Queue.Retrying(ctx)
		if err != nil {
			return true
		}
		if len(retries) == 0 {
			continue
		}
		workers, err := w.Fleet.Workers(ctx)
		if err != nil || slices.ContainsFunc(retries, func(rec thread.Record) bool { return !p.leavesTo(workers, of.Name, rec) }) {
			return true
		}
	}
	return false
}
