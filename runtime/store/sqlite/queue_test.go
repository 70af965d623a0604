package sqlite

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

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
	if _, _, err := store.Register(ctx, s, newThread("d", ""), claimNothing); !errors.Is(err, context.DeadlineExceeded) {
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
		rec, _, err := store.Register(ctx, s, newThread("d", ""), claimNothing)
		if err != nil {
			return err
		}
		id := rec.ThreadID
		_, enqueued := s.Enqueue(ctx, id, 1000, testTime)
		_, claimed := storetest.As(s).Apply(ctx, store.Claimed(id, thread.Process{PID: 1, Host: "h"}, testTime))
		err = errors.Join(enqueued, claimed,
			s.Reserve(ctx, id, "root", 10, testTime),
			storetest.As(s).RecordCost(ctx, id, thread.Cost{Turns: 1}, 1),
			storetest.As(s).Report(ctx, id, 1, testTime),
			storetest.As(s).Settle(ctx, id, testTime),
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
	stranger := sharedfile.Pool(s.registry.path, 1)
	defer stranger.Close() //nolint:errcheck // nothing was written
	tx, err := stranger.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := store.Register(ctx, s, newThread("d", ""), claimNothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("registered beside an open transaction: %v", err)
	}
	done := make(chan error)
	go func() {
		_, _, err := store.Register(t.Context(), s, newThread("d", ""), claimNothing)
		done <- err
	}()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
