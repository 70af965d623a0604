// Package crowdtest is the part of the conformance suite of stores in which several
// processes of a test binary use one store, and are killed.
package crowdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Engine is how processes come to a store that they share.
type Engine struct {
	// Make makes a place for a new store, in words that another process is told.
	Make func(t testing.TB) (place string)
	// Open opens the store at a place.
	Open func(ctx context.Context, place string) (store.Store, error)
	// Budgeted are the threads that have a budget, in the order of their ids.
	Budgeted func(ctx context.Context, s store.Store) ([]thread.ID, error)
	// Alone waits until no other process has work at the store of s, after all others have
	// ended; nil: the work of a process ends with it.
	Alone func(ctx context.Context, s store.Store) error
	// Lock takes a lock of this process, or returns an error that wraps [store.ErrTaken].
	Lock func(path string) (release func() error, err error)
}

// Locks are the [Engine.Lock] of processes that take locks with acquire, whose error is
// taken where another process has the lock. No store knows how processes do that.
func Locks[L interface{ Release() error }](acquire func(path string) (L, error), taken error) func(path string) (func() error, error) {
	return func(path string) (release func() error, err error) {
		lock, err := acquire(path)
		if errors.Is(err, taken) {
			return nil, store.ErrTaken
		}
		if err != nil {
			return nil, err
		}
		return lock.Release, nil
	}
}

// roleVar makes a process of the test binary play a role instead of testing.
const roleVar = "STORE_CROWD_ROLE"

// Play plays the role that this process has, and ends it; where it has none it does
// nothing. It is called first in TestMain.
func (e Engine) Play() {
	role := os.Getenv(roleVar)
	if role == "" {
		return
	}
	if err := e.play(role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (e Engine) play(role string, args []string) error {
	ctx := context.Background()
	s, err := e.Open(ctx, args[0])
	if err != nil {
		return err
	}
	p := playing{s, e, args[1:]}
	switch role {
	case "spend":
		err = p.spend(ctx, os.Stdin, os.Stdout)
	case "admit":
		err = p.admit(ctx, os.Stdin, os.Stdout)
	case "storm":
		err = p.storm(ctx, os.Stdin)
	default:
		return fmt.Errorf("bug; no role %q", role)
	}
	if err != nil {
		return err
	}
	return s.Close()
}

// playing is a process that plays a role.
type playing struct {
	store  store.Store
	engine Engine
	args   []string
}

// Start starts a process in a role of this package, at a place.
func (e Engine) Start(t testing.TB, role, place string, args ...string) *Player {
	t.Helper()
	return Start(t, roleVar+"="+role, append([]string{place}, args...)...)
}

// open opens the store at a place until the test ends.
func (e Engine) open(t testing.TB, place string) store.Store {
	t.Helper()
	s, err := e.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// awaitAlone waits until nothing of the processes that have ended goes on.
func (e Engine) awaitAlone(t *testing.T, s store.Store) {
	t.Helper()
	if e.Alone == nil {
		return
	}
	if err := e.Alone(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// register registers a thread of no parent.
func register(ctx context.Context, s store.Store) (thread.ID, error) {
	n := store.NewThread{Kind: thread.KindDirective, Directive: "d", Now: testTime}
	rec, _, err := store.Register(ctx, s, n, func(thread.ID) error { return nil })
	return rec.ThreadID, err
}

// endThread ends a thread, which another may have done first.
func endThread(ctx context.Context, s store.Store, id thread.ID) error {
	c, err := store.Finished(id, thread.Outcome{State: thread.Error}, nil, testTime)
	if err != nil {
		return err
	}
	_, err = storetest.As(s).Apply(ctx, c)
	if errors.Is(err, thread.ErrSettled) {
		return nil
	}
	return err
}
