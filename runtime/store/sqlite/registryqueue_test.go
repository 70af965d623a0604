package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestMigrateToQueue opens a registry of the version before the queue, with rows.
func TestMigrateToQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, registryFile)
	first(t, path, func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), `INSERT INTO threads
			(thread_id, completed_at, kind, result, directive, parent_id, status, created_at, updated_at, last_used) VALUES
			('waits', NULL, 'directive', NULL, 'd', NULL, 'created', 1000, 2000, 3000),
			('runs', NULL, 'directive', NULL, 'd', 'waits', 'running', 1000, 2000, 3000),
			('tool', NULL, 'tool', NULL, 'd', 'waits', 'running', 1000, 2000, 3000),
			('ended', 2500, 'directive', '{"status":"error"}', 'd', 'waits', 'error', 1000, 2000, 3000)`)
		return err
	})
	s := open(t, dir, Options{})
	for _, want := range []thread.Record{
		{ThreadID: "waits", Status: thread.Created, QueuedAt: time.UnixMilli(1000), AdmittedAt: time.UnixMilli(1000)},
		{ThreadID: "runs", Status: thread.Running, QueuedAt: time.UnixMilli(1000), AdmittedAt: time.UnixMilli(1000), ParentID: "waits"},
		{ThreadID: "tool", Status: thread.Running, ParentID: "waits"},
		{ThreadID: "ended", Status: thread.Error, ParentID: "waits"},
	} {
		got, err := s.Get(t.Context(), want.ThreadID)
		if err != nil || got.Status != want.Status || got.ParentID != want.ParentID || got.Yielded || got.Queued() ||
			!got.QueuedAt.Equal(want.QueuedAt) || !got.AdmittedAt.Equal(want.AdmittedAt) {
			t.Errorf("migrated %+v, %v", got, err)
		}
	}
	id := mustRegister(t, s, newThread("d", ""))
	if rec, err := s.Enqueue(t.Context(), id, 2, testTime); err != nil || !rec.Queued() {
		t.Errorf("beside two that run: %+v, %v", rec, err)
	}
	if load, err := s.QueueLoad(t.Context()); err != nil || load != (store.QueueLoad{Occupied: 2, Queued: 1}) {
		t.Errorf("load %+v, %v", load, err)
	}
	if lost, err := s.Lost(t.Context()); lost || err != nil {
		t.Errorf("lost %v, %v", lost, err)
	}
}

// first makes a registry of schema version 1 and lets fill write to it.
func first(t *testing.T, path string, fill func(*sql.DB) error) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := sharedfile.Pool(path, 1)
	provider, err := newProvider(db, names[registryFile])
	if err != nil {
		t.Fatal(err)
	}
	_, err = provider.UpTo(t.Context(), 1)
	if err := errors.Join(err, fill(db), db.Close()); err != nil {
		t.Fatal(err)
	}
}
