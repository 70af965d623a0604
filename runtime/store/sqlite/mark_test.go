package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func markOf(place string) func(string) string {
	return func(database string) string { return place + " " + database }
}

// TestMark: a database is believed when it carries the mark of its place, which a new
// one gets. Any other is as good as damaged.
func TestMark(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		bad   bool
	}{
		"its own": {func(string) error { return nil }, false},
		"another place's": {func(dir string) error {
			return execute(dir, "UPDATE place SET mark = 'there registry'")
		}, true},
		"that of the ledger": {func(dir string) error {
			return execute(dir, "UPDATE place SET mark = 'here ledger'")
		}, true},
		"none":   {func(dir string) error { return execute(dir, "DROP TABLE place") }, true},
		"no row": {func(dir string) error { return execute(dir, "DELETE FROM place") }, true},
		"a view": {func(dir string) error {
			return execute(dir, "DROP TABLE place; CREATE VIEW place (mark) AS SELECT 'here registry'")
		}, true},
		"too early": {func(dir string) error { return os.Truncate(filepath.Join(dir, registryFile), 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, err := Open(t.Context(), dir, Options{Mark: markOf("here")})
			if err == nil {
				err = errors.Join(s.Close(), tt.spoil(dir))
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err = Open(t.Context(), dir, Options{Mark: markOf("here")})
			if err == nil {
				defer func() { _ = s.Close() }()
			}
			damage, damaged := errors.AsType[*store.CorruptError](err)
			if damaged != tt.bad || !damaged && err != nil {
				t.Fatalf("opened with %v", err)
			}
			if !tt.bad {
				return
			}
			aside, err := SetAside(t.Context(), damage.Path, testTime, markOf("here"))
			if err != nil || aside == "" {
				t.Fatalf("set aside as %q, %v", aside, err)
			}
			s, err = Open(t.Context(), dir, Options{Mark: markOf("here")})
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
		})
	}
}

// execute changes the registry in dir by hand.
func execute(dir, query string) error {
	db := sharedfile.Pool(filepath.Join(dir, registryFile), 1)
	_, err := db.Exec(query)
	return errors.Join(err, db.Close())
}

// TestClaim: databases of before there were marks get theirs, and claiming them again
// changes nothing.
func TestClaim(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Claim(t.Context(), dir, markOf("here")); err != nil {
		t.Errorf("where there is nothing: %v", err)
	}
	s := open(t, dir, Options{})
	for range 2 {
		if err := Claim(t.Context(), dir, markOf("here")); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir, Options{Mark: markOf("here")})
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("under who has it open: %v", err)
	}
	if _, err := Open(t.Context(), dir, Options{Mark: markOf("there")}); err == nil {
		t.Error("opened as another place's")
	}
}

// TestRemember: of a registry that is not believed the names and request keys are
// read, and nothing is asked of what only looks like one.
func TestRemember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if known, err := Remember(t.Context(), dir); len(known) > 0 || err != nil {
		t.Errorf("where there is none: %v, %v", known, err)
	}
	s := open(t, dir, Options{})
	n := store.NewThread{Kind: thread.KindDirective, Directive: "work", Name: "Work on it", RequestKey: "k", Now: testTime}
	rec, _, err := store.Register(t.Context(), s, n, func(thread.ID) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	known, err := Remember(t.Context(), dir)
	if err != nil || len(known) != 1 || known[rec.ThreadID] != (store.Remembered{Name: "Work on it", RequestKey: "k"}) {
		t.Errorf("%v, %v", known, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const view = `DROP TABLE threads; CREATE VIEW threads (thread_id, name, request_key) AS
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS name, i AS key FROM n`
	if err := execute(dir, view); err != nil {
		t.Fatal(err)
	}
	if known, err := Remember(t.Context(), dir); len(known) > 0 || err != nil {
		t.Errorf("a view without end: %d threads, %v", len(known), err)
	}
	if err := os.WriteFile(filepath.Join(dir, registryFile), []byte("no database at all, and long enough to be read as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if known, err := Remember(t.Context(), dir); len(known) > 0 || err == nil {
		t.Errorf("no database: %v, %v", known, err)
	}
}
