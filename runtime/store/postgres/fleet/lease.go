package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ErrLost says that a lease has run out, or that its worker could not renew it for two
// thirds of its time. Threads that ran by it must not go on.
var ErrLost = errors.New("the lease of this worker is lost")

// Lease is the stay of a worker in its fleet.
type Lease struct {
	Worker
	Incarnation thread.Incarnation

	fleet *Fleet

	mu      sync.Mutex
	renewed time.Time // before the request of the last renewal that was answered
	lost    chan struct{}
	over    bool
}

// Inherit is a lease that another process of this machine has taken, and that this one renews
// from now on. The first renewal tells whether it goes on.
func (f *Fleet) Inherit(i thread.Incarnation, w Worker) *Lease {
	return &Lease{fleet: f, Worker: w, Incarnation: i, lost: make(chan struct{}), renewed: f.now()}
}

// Lost is closed when the lease is lost.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// left is how long the worker may still count on the lease.
func (l *Lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return 0
	}
	return l.fleet.ttl()*2/3 - l.fleet.now().Sub(l.renewed)
}

// Holds reports whether the worker may count on the lease, by its own clock: before the next
// renewal of one that was suspended, or could not renew, has said so.
func (l *Lease) Holds() bool { return l.left() > 0 }

// lose ends the lease for its worker.
func (l *Lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		close(l.lost)
	}
}

// Keep renews the lease until ctx ends or it is lost, which the error says. A renewal that
// fails is tried again at once, and the time of the lease bounds each of them.
func (l *Lease) Keep(ctx context.Context) error {
	for {
		beat := l.fleet.Renewal()
		if err := l.Renew(ctx); errors.Is(err, ErrLost) {
			return err
		} else if err != nil {
			beat /= 6
		}
		pause := time.NewTimer(min(beat, max(0, l.left())))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// Renew makes the lease last for its full time from now. The error wraps ErrLost once it is
// lost; any other may be gone at the next try.
func (l *Lease) Renew(ctx context.Context) error {
	left := l.left()
	if left <= 0 {
		l.lose()
		return ErrLost
	}
	ctx, stop := context.WithTimeout(ctx, left)
	defer stop()
	asked := l.fleet.now()
	done, err := l.fleet.Pool.Exec(ctx, `UPDATE rye.workers SET lease_until = clock_timestamp() + $2::bigint * interval '1 millisecond'
	WHERE incarnation = $1 AND lease_until > clock_timestamp()`, string(l.Incarnation), l.fleet.ttl().Milliseconds())
	if err == nil && done.RowsAffected() == 0 {
		l.lose()
		return ErrLost
	}
	if err == nil {
		l.mu.Lock()
		l.renewed = asked
		l.mu.Unlock()
	}
	if l.left() <= 0 { // the answer, if any, came too late
		l.lose()
		return ErrLost
	}
	if err != nil {
		return fmt.Errorf("renew the lease of worker %q: %w", l.Name, err)
	}
	return nil
}

// Drain says that the worker takes no more threads.
func (l *Lease) Drain(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, l.fleet.ttl())
	defer stop()
	_, err := l.fleet.Pool.Exec(ctx, `UPDATE rye.workers SET draining = true WHERE incarnation = $1`, string(l.Incarnation))
	if err != nil {
		return fmt.Errorf("say that worker %q drains: %w", l.Name, err)
	}
	return nil
}

// Lacks says which commits the checkouts of the worker lack.
func (l *Lease) Lacks(ctx context.Context, commits []string) error {
	ctx, stop := context.WithTimeout(ctx, l.fleet.ttl())
	defer stop()
	_, err := l.fleet.Pool.Exec(ctx, `UPDATE rye.workers SET lacks = $2 WHERE incarnation = $1`, string(l.Incarnation), orEmpty(commits))
	if err != nil {
		return fmt.Errorf("say what the checkouts of worker %q lack: %w", l.Name, err)
	}
	return nil
}

// Leave ends the lease. Threads that still run by it are dead for everybody from then on. Of a
// worker it is shown that it was there; nobody asks for others. A starter of an older version has
// one for all its runs and names no machine: that one is not for a run to end.
func (l *Lease) Leave(ctx context.Context) error {
	l.lose()
	ctx, stop := context.WithTimeout(ctx, l.fleet.ttl())
	defer stop()
	end := `UPDATE rye.workers SET lease_until = least(lease_until, clock_timestamp()), draining = true WHERE incarnation = $1 AND machine = $2`
	if l.Slots == 0 {
		end = `DELETE FROM rye.workers WHERE incarnation = $1 AND machine = $2`
	}
	_, err := l.fleet.Pool.Exec(ctx, end, string(l.Incarnation), l.Machine)
	if err != nil {
		return fmt.Errorf("leave the fleet: %w", err)
	}
	return nil
}
