package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// keptLease is the lease of a run outside of any worker. The starter of a thread takes it with
// the run, and the thread's process renews it as long as it lives, whatever becomes of the
// starter. As long as both are there both renew it: a process that starts slowly is not dead.
// One by which no life was claimed is used for the next run; that of any other ends with it, as
// a row can go on naming the run.
type keptLease struct {
	*fleet.Lease

	stop    context.CancelFunc // of its renewal
	users   int                // of this process: who made the run, and the lives that it has claimed
	claimed bool               // a life was, by the run
	given   bool               // to the process of a thread
}

var _ life.Leases = (*Guest)(nil)

// incarnation is that of a lease that no other run lives by.
func (g *Guest) incarnation(ctx context.Context) (thread.Incarnation, error) {
	if own, found := g.free(); found { //nolint:contextcheck // a lease is renewed beyond the call
		return own, nil
	}
	f, err := g.Fleet(ctx)
	if err != nil {
		return "", err
	}
	self := g.Self
	self.Name = fmt.Sprintf("%s %s", self.Name, thread.NewIncarnation()) // two of a process must not be in each other's way
	lease, err := f.Join(ctx, self)
	if err != nil {
		return "", err
	}
	g.keep(lease, func(error) {}) //nolint:contextcheck // it is renewed beyond the call; the next run gets another
	return lease.Incarnation, nil
}

// free takes a lease that was taken before, and that no run lives by.
func (g *Guest) free() (own thread.Incarnation, found bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for own, l := range g.leases {
		switch {
		case l.users > 0 || l.given:
		case !l.Holds():
			g.drop(l)
		default:
			l.users = 1
			return own, true
		}
	}
	return "", false
}

// keep renews the lease of a run until it is left, lost or the guest is closed.
func (g *Guest) keep(lease *fleet.Lease, lost func(error)) {
	keeping, stop := context.WithCancel(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leases == nil {
		g.leases = map[thread.Incarnation]*keptLease{}
	}
	g.leases[lease.Incarnation] = &keptLease{Lease: lease, stop: stop, users: 1}
	g.kept.Go(func() {
		if err := lease.Keep(keeping); err != nil && keeping.Err() == nil {
			lost(err)
		}
	})
}

// Inherit renews the lease of the run that this process was given by its starter. When it is
// lost the run goes on until somebody ends it, which the row says (runtime/loop/heed.go): where
// nobody else looks, nothing has happened.
func (g *Guest) Inherit(ctx context.Context, run thread.Run) error {
	if g.Under != "" || run.Incarnation() == "" {
		return nil
	}
	f, err := g.Fleet(ctx)
	if err != nil {
		return err
	}
	g.keep(f.Inherit(run.Incarnation(), g.Self), func(err error) { //nolint:contextcheck // it is renewed beyond the call
		g.Log.Warn().Err(err).Msg("another machine may end this thread")
	})
	return nil
}

// of calls do with the lease of a run, if that is one of the guest's.
func (g *Guest) of(run thread.Run, do func(*keptLease)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.leases[run.Incarnation()]; l != nil {
		do(l)
	}
}

// Take implements [life.Leases].
func (g *Guest) Take(run thread.Run) {
	g.of(run, func(l *keptLease) { l.users, l.claimed = l.users+1, true })
}

// Back implements [life.Leases].
func (g *Guest) Back(run thread.Run) {
	g.of(run, func(l *keptLease) {
		if l.users--; l.users == 0 && l.claimed && !l.given {
			g.drop(l)
		}
	})
}

// Give implements [life.Leases].
func (g *Guest) Give(run thread.Run, ended <-chan struct{}) {
	g.of(run, func(l *keptLease) {
		l.users, l.given = l.users-1, true
		keeping, closed := context.WithCancel(context.Background())
		stop := l.stop
		l.stop = func() { stop(); closed() }
		g.kept.Go(func() {
			select {
			case <-ended:
				g.forget(l) //nolint:contextcheck // a lease is renewed beyond the call
			case <-keeping.Done():
			}
		})
	})
}

// drop is forget for a caller that has the guest's lock, and does not wait.
func (g *Guest) drop(l *keptLease) {
	delete(g.leases, l.Incarnation)
	g.kept.Go(func() { g.forget(l) })
}

// forget ends a lease that nobody lives by any more.
func (g *Guest) forget(l *keptLease) {
	g.mu.Lock()
	delete(g.leases, l.Incarnation)
	g.mu.Unlock()
	l.stop()
	ctx, done := context.WithTimeout(context.Background(), closeWithin)
	defer done()
	_ = l.Leave(ctx) // else it runs out
}

// closeWithin bounds what a guest asks the fleet at its end.
const closeWithin = time.Second

// Close gives back the leases that nobody lives by any more. Those of threads that go on get
// their full time once more, in which the process of a thread takes its own over.
//
//nolint:contextcheck,nolintlint // the caller of Close has no time limit of its own
func (g *Guest) Close() {
	g.mu.Lock()
	leases := g.leases
	g.leases = nil
	g.mu.Unlock()
	for _, l := range leases {
		l.stop()
	}
	g.kept.Wait()
	ctx, done := context.WithTimeout(context.Background(), closeWithin)
	defer done()
	var ending sync.WaitGroup
	for _, l := range leases {
		end := l.Leave // else it runs out
		if l.given {
			end = l.Renew
		}
		ending.Go(func() { _ = end(ctx) })
	}
	ending.Wait()
}
