package life

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Leased are the lives of threads that several machines run. On this machine they are
// what Life says; a run that a worker has given lives, for everybody else, as long as the
// lease of that worker.
type Leased struct {
	Life // of this machine
	// Alive asks the fleet for the lease of an incarnation.
	Alive func(context.Context, thread.Incarnation) (bool, error)
	// Own is the incarnation whose threads run on this machine with this state folder; of
	// those the locks here say all. Empty: there is none.
	Own func() thread.Incarnation

	mu    sync.Mutex
	asked map[thread.Incarnation]answer
	round int // of answers that may be remembered
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
	l.round++ // what is being answered now may be older
}
