package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestUpgradeBesideOlderProcess: a process of the version before has the registry open
// while a newer one migrates it. What the older one reads and writes goes on, and its
// rows name their process by number and host alone.
func TestUpgradeBesideOlderProcess(t *testing.T) {
	t.Parallel()
	const before = 5 // the schema without boot_id, pid_namespace and pid_started
	dir := t.TempDir()
	path := filepath.Join(dir, registryFile)
	if err := ensureFile(path); err != nil {
		t.Fatal(err)
	}
	older, err := openPool(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close() //nolint:errcheck // the test is over
	if _, err := older.ExecContext(t.Context(), "PRAGMA journal_mode = WAL"); err != nil {
		t.Fatal(err)
	}
	provider, err := newProvider(older, "registry")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	claim, err := older.PrepareContext(t.Context(), "UPDATE threads SET status = 'running', pid = ?, host = ? WHERE thread_id = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Close() //nolint:errcheck // the test is over
	const insert = `INSERT INTO threads (thread_id, kind, directive, created_at, updated_at, last_used)
		VALUES (?, 'directive', 'd', 1, 1, 1)`
	if _, err := older.ExecContext(t.Context(), insert, "a-1"); err != nil {
		t.Fatal(err)
	}

	s := open(t, dir, Options{})
	if _, err := claim.ExecContext(t.Context(), 4711, "there", "a-1"); err != nil {
		t.Errorf("a statement of before: %v", err)
	}
	if _, err := older.ExecContext(t.Context(), insert, "a-2"); err != nil {
		t.Errorf("a new row of the older one: %v", err)
	}
	rec, err := s.Get(t.Context(), "a-1")
	if want := (thread.Process{PID: 4711, Host: "there"}); err != nil || rec.Status != thread.Running || rec.Process != want {
		t.Errorf("row %+v, %v", rec, err)
	}
	if rows, _, err := s.List(t.Context(), store.Filter{}); err != nil || len(rows) != 2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
