package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// live is a row as a folder tells it.
var live = store.Restored{Record: thread.Record{
	ThreadID: "live-1", Kind: thread.KindDirective, Directive: "live", Status: thread.Running,
	CreatedAt: testTime, UpdatedAt: testTime, LastUsed: testTime,
}}

// restoreLive brings the row of live-1 back.
func restoreLive(ctx context.Context, s *Store) error {
	_, err := s.Restore(ctx, []store.Restored{live})
	return err
}

// TestRebuiltWhileOpen: the user of a store whose registry was removed under it
// finds, and changes, rows that were brought back first.
func TestRebuiltWhileOpen(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(ctx context.Context, s *Store) error{
		"read": func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, "live-1"); return err },
		"write": func(ctx context.Context, s *Store) error {
			return storetest.As(s).RecordCost(ctx, "live-1", thread.Cost{Turns: 1}, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filled(t)
			s := open(t, dir, Options{Rebuild: restoreLive})
			if err := os.Remove(s.registry.path); err != nil {
				t.Fatal(err)
			}
			var users sync.WaitGroup
			for range 8 {
				users.Go(func() {
					if err := use(t.Context(), s); err != nil {
						t.Error(err)
					}
				})
			}
			users.Wait()
			if lost, err := s.Lost(t.Context()); lost || err != nil {
				t.Errorf("lost %t, %v", lost, err)
			}
		})
	}
}

// TestRebuiltByAnother: what another process has brought back is not rebuilt
// again; a rebuilding that fails is repeated by the next who needs it.
func TestRebuiltByAnother(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	fails, calls := errors.New("no folder can be read"), 0
	s := open(t, dir, Options{Rebuild: func(ctx context.Context, s *Store) error {
		if calls++; calls == 1 {
			return fails
		}
		return restoreLive(ctx, s)
	}})
	other := open(t, dir, Options{})
	if err := os.Remove(s.registry.path); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{fails, nil} {
		if _, err := s.Get(t.Context(), "live-1"); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if err := os.Remove(s.registry.path); err != nil {
		t.Fatal(err)
	}
	before := calls
	if err := restoreLive(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "live-1"); err != nil || calls != before {
		t.Errorf("rebuilt %d times more, %v", calls-before, err)
	}
}

// TestDamagedWhileOpen: a database that is damaged under an open store is set
// aside, and a read goes on with the rows that were brought back.
func TestDamagedWhileOpen(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	var kept string
	s := open(t, dir, Options{Rebuild: restoreLive, Damaged: func(ctx context.Context, damage *store.CorruptError) {
		aside, err := SetAside(ctx, damage.Path, testTime, nil)
		if err != nil {
			t.Error(err)
		}
		kept = aside
	}})
	damage(t, s.registry.path, func([]byte) []byte { return []byte(strings.Repeat("no SQLite file ", 1000)) })
	if _, err := s.Get(t.Context(), "live-1"); err != nil {
		t.Error(err)
	}
	if filepath.Dir(kept) != dir {
		t.Errorf("kept as %q", kept)
	}
	if err := storetest.As(s).RecordCost(t.Context(), "live-1", thread.Cost{Turns: 1}, 1); err != nil {
		t.Error(err)
	}
}
