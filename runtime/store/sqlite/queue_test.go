package sqlite

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// twoQueues stand for two processes: their locks are of separate open files.
func twoQueues(t *testing.T) (mine, other *queue) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lock")
	var err error
	if mine, err = openQueue(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if other, err = openQueue(path, Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(mine.close(), other.close()); err != nil {
			t.Error(err)
		}
	})
	return mine, other
}

// acquire takes a turn that must come.
func acquire(t *testing.T, q *queue) (release func()) {
	t.Helper()
	release, err := q.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// giveUp waits in vain; the only way out is the end of its context.
func giveUp(t *testing.T, q *queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if release, err := q.acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		if err == nil {
			release()
		}
		t.Fatalf("waiting for a turn that is taken ended with %v", err)
	}
}

// helperOf is the helper that waits in the kernel.
func helperOf(q *queue) *helper {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.helper
}

func TestQueueExcludes(t *testing.T) {
	t.Parallel()
	mine, other := twoQueues(t)
	const turns = 200
	var inside, taken atomic.Int32
	done := make(chan error)
	for _, q := range []*queue{mine, mine, other, other} {
		go func() {
			for range turns {
				release, err := q.acquire(t.Context())
				if err != nil {
					done <- err
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d have the turn", n)
				}
				taken.Add(1)
				inside.Add(-1)
				release()
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if taken.Load() != 4*turns {
		t.Errorf("%d turns, want %d", taken.Load(), 4*turns)
	}
}

func TestQueueWaitCanBeGivenUp(t *testing.T) {
	t.Parallel()
	mine, other := twoQueues(t)
	release := acquire(t, mine)
	giveUp(t, mine) // within the process
	giveUp(t, other)
	left := helperOf(other)
	if left == nil {
		t.Fatal("nobody waits in the kernel")
	}
	giveUp(t, other)
	if helperOf(other) != left {
		t.Error("the second caller did not take over the wait of the first")
	}
	// A caller who stays gets the turn that the others waited for.
	got := make(chan func())
	go func() { got <- acquire(t, other) }()
	release()
	(<-got)()
	acquire(t, mine)()
}

// TestTurnstileKeepsOrder: who gives the turn back and asks for it again does not
// overtake one who waits.
func TestTurnstileKeepsOrder(t *testing.T) {
	t.Parallel()
	mine, other := twoQueues(t)
	for range 50 {
		release := acquire(t, mine)
		got := make(chan error)
		go func() { got <- other.lock.wait() }()
		for waits := false; !waits; {
			free, err := tryLock(mine.lock.gate)
			if err != nil {
				t.Fatal(err)
			}
			if waits = !free; free {
				mine.lock.leave(mine.lock.gate)
			}
		}
		release()
		if overtook, err := mine.lock.try(); overtook || err != nil {
			t.Fatalf("overtook the one who waits: %v, %v", overtook, err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		other.lock.release()
	}
}

// TestQueueLetsGo: a lock that comes after everybody gave up is not kept.
func TestQueueLetsGo(t *testing.T) {
	t.Parallel()
	mine, other := twoQueues(t)
	release := acquire(t, mine)
	giveUp(t, other)
	release()
	for helperOf(other) != nil {
		runtime.Gosched()
	}
	acquire(t, mine)() // hangs if other keeps it
}

func TestQueueCloses(t *testing.T) {
	t.Parallel()
	mine, other := twoQueues(t)
	release := acquire(t, mine)
	giveUp(t, other)
	for range 2 {
		if err := other.close(); err != nil { // does not wait for mine
			t.Fatal(err)
		}
	}
	if _, err := other.acquire(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("turn of a closed queue: %v", err)
	}
	release()
	acquire(t, mine)()
	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := mine.acquire(ctx); !errors.Is(err, cause) {
		t.Errorf("turn for a context that has ended: %v", err)
	}
}

// TestKilledHolderFreesTheTurn kills a process in the middle of a transaction.
func TestKilledHolderFreesTheTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	holder := start(t, "hold", dir)
	if got := holder.line(); got != "held" {
		t.Fatalf("holder said %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := s.Register(ctx, newThread("d", ""), claimNothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("registered while another process writes: %v", err)
	}
	holder.kill(t)
	mustRegister(t, s, newThread("d", ""))
	holder.awaitEnd(t, true)
	if _, err := s.Get(t.Context(), thread.NewID("held", testTime, 1)); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("the killed process's row: %v", err)
	}
}

// TestOpenDoesNotWait: a store is opened and read while another process writes for a
// long time, as on a slow disk. To set a database aside needs a turn.
func TestOpenDoesNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, Options{})
	holder := start(t, "hold", dir)
	if got := holder.line(); got != "held" {
		t.Fatalf("holder said %q", got)
	}
	s := open(t, dir, Options{})
	if _, err := s.Get(t.Context(), thread.NewID("held", testTime, 1)); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("read what is not committed: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := SetAside(ctx, filepath.Join(dir, registryFile), testTime, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("set aside while another process writes: %v", err)
	}
	holder.goAhead(t)
	holder.awaitEnd(t, false)
	if _, err := s.Get(t.Context(), thread.NewID("held", testTime, 1)); err != nil {
		t.Error(err)
	}
}

// TestStorm has 32 processes write to both databases at once, of which none is
// shown that they are busy.
func TestStorm(t *testing.T) {
	t.Parallel()
	const processes = 32
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if err := s.OpenRoot(t.Context(), "root", 1<<30, testTime); err != nil {
		t.Fatal(err)
	}
	players := make([]*player, processes)
	for i := range players {
		players[i] = start(t, "storm", dir)
	}
	for _, p := range players {
		p.goAhead(t)
	}
	for _, p := range players {
		p.awaitEnd(t, false)
	}
	rows, _, err := s.List(t.Context(), store.Filter{States: []thread.State{thread.Error}, Limit: store.MaxPage})
	if err != nil || len(rows) != processes*stormThreads {
		t.Errorf("%d threads have ended, %v", len(rows), err)
	}
	if b, err := s.Budget(t.Context(), "root"); err != nil || b.Actual != processes*stormThreads || b.Reserved != 0 {
		t.Errorf("budget %+v, %v", b, err)
	}
}

const stormThreads = 2

// playStorm takes threads through their lives as fast as it can.
func playStorm(ctx context.Context, dir string, in io.Reader) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	for range stormThreads {
		rec, _, err := s.Register(ctx, newThread("d", ""), claimNothing)
		if err != nil {
			return err
		}
		id := rec.ThreadID
		_, enqueued := s.Enqueue(ctx, id, 1000, testTime)
		_, claimed := s.Apply(ctx, store.Claimed(id, thread.Process{PID: 1, Host: "h"}, testTime))
		err = errors.Join(enqueued, claimed,
			s.Reserve(ctx, id, "root", 10, testTime),
			s.RecordCost(ctx, id, thread.Cost{Turns: 1}, 1),
			s.Report(ctx, id, 1, testTime),
			s.Settle(ctx, id, testTime),
			endThread(ctx, s, id))
		if err != nil {
			return err
		}
	}
	return s.Close()
}

// TestStrangerInTheDatabase: a transaction of somebody who does not queue is
// waited for as long as the context allows.
func TestStrangerInTheDatabase(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	stranger, err := openPool(s.registry.path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close() //nolint:errcheck // nothing was written
	tx, err := stranger.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := s.Register(ctx, newThread("d", ""), claimNothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("registered beside an open transaction: %v", err)
	}
	done := make(chan error)
	go func() {
		_, _, err := s.Register(t.Context(), newThread("d", ""), claimNothing)
		done <- err
	}()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
