package sharedfile

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// twoQueues stand for two processes: their locks are of separate open files.
func twoQueues(t *testing.T) (mine, other *Queue) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lock")
	var err error
	if mine, err = OpenQueue(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if other, err = OpenQueue(path, Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(mine.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
	return mine, other
}

// acquire takes a turn that must come.
func acquire(t *testing.T, q *Queue) (release func()) {
	t.Helper()
	release, err := q.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// giveUp waits in vain; the only way out is the end of its context.
func giveUp(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if release, err := q.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		if err == nil {
			release()
		}
		t.Fatalf("waiting for a turn that is taken ended with %v", err)
	}
}

// helperOf is the helper that waits in the kernel.
func helperOf(q *Queue) *helper {
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
	for _, q := range []*Queue{mine, mine, other, other} {
		go func() {
			for range turns {
				release, err := q.Acquire(t.Context())
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

// TestFairLockKeepsOrder: a writer that gives the turn back and asks for it again
// does not overtake one that waits.
func TestFairLockKeepsOrder(t *testing.T) {
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

// TestQueueForgetsAStall: a wait that was in vain is over when the turn has come since, whether
// anybody wanted it then or not: who has it next is given the whole time.
func TestQueueForgetsAStall(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]func(*testing.T, *Queue){
		"nobody wanted it": func(_ *testing.T, q *Queue) { q.alone() },
		"a caller had it":  func(t *testing.T, q *Queue) { acquire(t, q)() },
		"it was free": func(t *testing.T, q *Queue) {
			q.alone()
			q.stuck = q.newStall(time.Time{}) // as a caller leaves it who waited within the process
			acquire(t, q)()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "lock")
			holder, err := OpenQueue(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			waiter, err := OpenQueue(path, Options{Patience: Patience{Idle: time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			release := acquire(t, holder)
			if _, err := waiter.Acquire(t.Context()); err == nil || waiter.stuck.waiting == nil {
				t.Fatalf("the wait ended with %v", err)
			}
			release()
			turn(t, waiter)
			later := time.Now().Add(time.Hour)
			if s := waiter.resumeStall(later); !s.since.Equal(later) {
				t.Errorf("the next wait counts %v of one that is over", later.Sub(s.since))
			}
			if err := errors.Join(holder.Close(), waiter.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestQueueCloses(t *testing.T) {
	t.Parallel()
	mine, other := twoQueues(t)
	release := acquire(t, mine)
	giveUp(t, other)
	for range 2 {
		if err := other.Close(); err != nil { // does not wait for mine
			t.Fatal(err)
		}
	}
	if _, err := other.Acquire(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("turn of a closed queue: %v", err)
	}
	release()
	acquire(t, mine)()
	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := mine.Acquire(ctx); !errors.Is(err, cause) {
		t.Errorf("turn for a context that has ended: %v", err)
	}
}
