package fleet_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// step is a claim of a thread, from one run to another, or a write by a run.
type step struct {
	claim    bool
	from, by thread.Run
}

// owned is what claims and writes must look like: one run has the thread at a time, and only
// that one writes.
func owned(first thread.Run) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			owner, in, done := state.(thread.Run), input.(step), output.(bool)
			switch {
			case in.claim && done:
				return owner == in.from, in.by
			case in.claim:
				return owner != in.from, owner
			}
			return done == (owner == in.by), owner
		},
	}
}

// history has three workers claim a thread from each other and write to it, also by runs that
// were replaced meanwhile, and returns what they saw. By makes the writer of a run.
func history(t *testing.T, by func(s *postgres.Store, id thread.ID, run thread.Run) store.Runner) (first thread.Run, events []porcupine.Operation) {
	t.Helper()
	server, err := postgres.Connect(t.Context(), postgres.Options{URL: pgtest.Server(t), Connections: 6})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the test is over
	s, err := server.Project(t.Context(), "team/app")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	first = thread.NewIncarnation().NewRun()
	rec, _, err := store.Register(t.Context(), s, store.NewThread{Kind: thread.KindDirective, Directive: "d", Now: time.Now(), Run: first}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu      sync.Mutex
		clock   atomic.Int64
		workers sync.WaitGroup
	)
	record := func(client int, in step, do func() error) {
		call := clock.Add(1)
		err := do()
		if err != nil && !errors.Is(err, store.ErrFenced) && !errors.Is(err, thread.ErrSettled) {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		events = append(events, porcupine.Operation{ClientId: client, Input: in, Output: err == nil, Call: call, Return: clock.Add(1)})
	}
	for client := range 3 {
		workers.Go(func() {
			for range 6 {
				seen, err := s.Get(t.Context(), rec.ThreadID)
				if err != nil {
					t.Error(err)
					return
				}
				own := thread.NewIncarnation().NewRun()
				record(client, step{claim: true, from: seen.Run, by: own}, func() error {
					_, err := s.Replace(t.Context(), rec.ThreadID, seen.Run, own)
					return err
				})
				for _, run := range []thread.Run{own, seen.Run} { // the second is one that wakes late
					record(client, step{by: run}, func() error {
						return by(s, rec.ThreadID, run).SetProcess(t.Context(), thread.Process{Host: "h"})
					})
				}
			}
		})
	}
	workers.Wait()
	return first, events
}

// TestFence: several workers claim one thread from each other and write to it, late ones
// too. All that they see could have been seen one after the other with one owner at a time.
// With the fence taken away it is not.
func TestFence(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	first, seen := history(t, func(s *postgres.Store, id thread.ID, run thread.Run) store.Runner { return s.Runner(id, run) })
	if !porcupine.CheckOperations(owned(first), seen) {
		t.Errorf("a run that was replaced has written: %+v", seen)
	}
	first, seen = history(t, func(s *postgres.Store, id thread.ID, _ thread.Run) store.Runner {
		now, err := s.Get(t.Context(), id)
		if err != nil {
			t.Error(err)
		}
		return s.Runner(id, now.Run) // a writer names the run that stands there
	})
	if porcupine.CheckOperations(owned(first), seen) {
		t.Error("without the fence nothing is noticed")
	}
}
