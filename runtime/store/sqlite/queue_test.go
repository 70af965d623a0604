package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestKilledHolderFreesTheTurn kills a process in the middle of a transaction.
func TestKilledHolderFreesTheTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	holder := start(t, "hold", dir)
	if got := holder.Line(); got != "held" {
		t.Fatalf("holder said %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := store.Register(ctx, s, newThread("d", ""), claimNothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("registered while another process writes: %v", err)
	}
	holder.Kill(t)
	mustRegister(t, s, newThread("d", ""))
	holder.AwaitEnd(t, true)
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
	if got := holder.Line(); got != "held" {
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
	holder.GoAhead(t)
	holder.AwaitEnd(t, false)
	if _, err := s.Get(t.Context(), thread.NewID("held", testTime, 1)); err != nil {
		t.Error(err)
	}
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
