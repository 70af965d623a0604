package crowdtest

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Storm has many processes write to both databases at once, of which none is
// shown that they are busy.
func (e Engine) Storm(t *testing.T, processes int) {
	place := e.Make(t)
	s := e.open(t, place)
	if err := s.OpenRoot(t.Context(), "root", 1<<30, testTime); err != nil {
		t.Fatal(err)
	}
	players := make([]*Player, processes)
	for i := range players {
		players[i] = e.Start(t, "storm", place)
	}
	for _, p := range players {
		p.GoAhead(t)
	}
	for _, p := range players {
		p.AwaitEnd(t, false)
	}
	rows, _, err := s.List(t.Context(), store.Filter{States: []thread.State{thread.Error}, Limit: store.MaxPage})
	if err != nil || len(rows) != processes*stormThreads {
		t.Errorf("%d threads have ended, %v", len(rows), err)
	}
	if b, err := s.Budget(t.Context(), "root"); err != nil || b.Actual != thread.Micros(processes*stormThreads) || b.Reserved != 0 {
		t.Errorf("budget %+v, %v", b, err)
	}
}

const stormThreads = 2

// storm takes threads through their lives as fast as it can.
func (p playing) storm(ctx context.Context, in io.Reader) error {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	s := storetest.As(p.store)
	for range stormThreads {
		id, err := register(ctx, p.store)
		if err != nil {
			return err
		}
		_, enqueued := s.Enqueue(ctx, id, 1000, testTime)
		_, claimed := s.Apply(ctx, store.Claimed(id, thread.Process{PID: 1, Host: "h"}, testTime))
		err = errors.Join(enqueued, claimed,
			s.Reserve(ctx, id, "root", 10, testTime),
			s.RecordCost(ctx, id, thread.Cost{Turns: 1}, 1),
			s.Report(ctx, id, 1, testTime),
			s.Settle(ctx, id, testTime),
			endThread(ctx, p.store, id))
		if err != nil {
			return err
		}
	}
	return nil
}
