package life

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Leased are the lives of threads that several machines run. On this machine they are
// what Life says; for everybody else a run lives as long as the lease of the incarnation that
// has given it.
type Leased struct {
	Life // of this machine
	// Alive asks the fleet for the lease of an incarnation. It is false for one whose threads
	// run on this machine with this state folder: of those the locks here say all.
	Alive func(context.Context, thread.Incarnation) (bool, error)
	// Own is the incarnation of the worker that this process is or runs a thread of, for which
	// nobody has to be asked; empty: there is none.
	Own func() thread.Incarnation
	// Leases are told what becomes of the runs that are claimed here; nil: a worker's lease
	// is that of all its runs.
	Leases Leases

	mu    sync.Mutex
	asked map[thread.Incarnation]answer
	round int // of answers that may be remembered
}

// Leases are those of a process that is no worker: one for each run that it claims at the same
// time. A run that it knows no lease of is none of theirs.
type Leases interface {
	// Take says that a run is claimed.
	Take(thread.Run)
	// Back says that one who had a run has let it go.
	Back(thread.Run)
	// Give says that a process has the run from now on, which renews the lease itself.
	Give(run thread.Run, ended <-chan struct{})
}

type answer struct {
	alive bool
	at    time.Time
}

// The fleet is asked for a lease at most so often, and so long: a lease that is seen run out a
// moment later is settled a moment later.
const (
	askAgain  = 200 * time.Millisecond
	askWithin = 2 * time.Second
	maxAsked  = 1000
)

var _ Life = (*Leased)(nil)

// Claim implements [Life].
func (l *Leased) Claim(k Key) (Hold, error) {
	hold, err := l.Life.Claim(k)
	if err != nil || l.Leases == nil {
		return hold, err
	}
	l.Leases.Take(k.Run)
	return &leasedLife{Hold: hold, leases: l.Leases, run: k.Run}, nil
}

// leasedLife is the life of one run, which is let go with its lease.
type leasedLife struct {
	Hold

	leases Leases
	run    thread.Run
	over   sync.Once // for this process
}

// Release implements [Hold].
func (h *leasedLife) Release() error {
	defer h.over.Do(func() { h.leases.Back(h.run) })
	return h.Hold.Release()
}

// End implements [Hold].
func (h *leasedLife) End() error {
	defer h.over.Do(func() { h.leases.Back(h.run) })
	return h.Hold.End()
}

// HandOver says that a process has inherited what was claimed.
func HandOver(h Hold, to Running) {
	if life, leased := h.(*leasedLife); leased {
		life.over.Do(func() { life.leases.Give(life.run, to.Done()) })
	}
}

// Held implements [Life].
func (l *Leased) Held(k Key) (bool, error) {
	held, err := l.Life.Held(k)
	by := k.Run.Incarnation()
	if held || err != nil || by == "" || by == l.Own() {
		return held, err
	}
	return l.leased(by)
}

// leased reports whether the lease of an incarnation goes on. One that has run out never
// does again.
func (l *Leased) leased(by thread.Incarnation) (bool, error) {
	l.mu.Lock()
	known, ok := l.asked[by]
	round := l.round
	l.mu.Unlock()
	if ok && (!known.alive || time.Since(known.at) < askAgain) {
		return known.alive, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), askWithin)
	defer stop()
	alive, err := l.Alive(ctx, by)
	if err != nil {
		return false, fmt.Errorf("look who has run %s…: %w", by, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if round != l.round {
		return alive, nil
	}
	if l.asked == nil || len(l.asked) >= maxAsked {
		l.asked = map[thread.Incarnation]answer{}
	}
	l.asked[by] = answer{alive, time.Now()}
	return alive, nil
}

// AskAgain forgets what the fleet has answered, for a caller that has seen a lease run out
// since.
func (l *Leased) AskAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.asked)
	l.round++ // an answer that is under way may be older
}
