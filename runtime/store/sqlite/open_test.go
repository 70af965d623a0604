package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func TestOpenCreatesPrivateFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are POSIX's")
	}
	// The name has what ends a path in a URI.
	dir := filepath.Join(t.TempDir(), "a b?c#d%20é", "threads")
	s := open(t, dir, Options{})
	mustRegister(t, s, newThread("d", ""))
	if err := s.OpenRoot(t.Context(), "d", 1, testTime); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	want := "budget_ledger.db budget_ledger.db-shm budget_ledger.db-wal ledger.lock ledger.lock.gate registry.db registry.db-shm registry.db-wal registry.lock registry.lock.gate"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files %q, want %q", got, want)
	}
}

func TestOpenAgainFindsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	id := mustRegister(t, s, newThread("d", ""))
	if err := s.OpenRoot(t.Context(), id, 5, testTime); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir, Options{})
	if _, err := again.Get(t.Context(), id); err != nil {
		t.Error(err)
	}
	if b, err := again.Budget(t.Context(), id); err != nil || b.MaxSpend != 5 {
		t.Errorf("budget %+v, %v", b, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		opts    Options
		want    string
	}{
		{name: "symbolic link", want: "symbolic link", prepare: func(t *testing.T, dir string) {
			symlink(t, t.TempDir(), dir)
		}},
		{name: "file", want: "not a folder", prepare: func(t *testing.T, dir string) {
			writeFile(t, dir, "")
		}},
		{name: "database through a link", want: "not a regular file", prepare: func(t *testing.T, dir string) {
			mkdir(t, dir)
			symlink(t, filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(dir, "budget_ledger.db"))
		}},
		{name: "lock is a folder", want: "not a regular file", prepare: func(t *testing.T, dir string) {
			mkdir(t, filepath.Join(dir, "registry.lock"))
		}},
		{name: "not a database", want: "registry.db", prepare: func(t *testing.T, dir string) {
			mkdir(t, dir)
			writeFile(t, filepath.Join(dir, "registry.db"), strings.Repeat("no SQLite file ", 100))
		}},
		{name: "negative interval", want: "negative", opts: Options{Poll: -1}, prepare: func(*testing.T, string) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "threads")
			tt.prepare(t, dir)
			s, err := Open(t.Context(), dir, tt.opts)
			if err == nil {
				t.Fatalf("opened: %v", s.Close())
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
		})
	}
}

func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenNewerSchema(t *testing.T) {
	t.Parallel()
	for _, pick := range []func(*Store) *database{
		func(s *Store) *database { return s.registry },
		func(s *Store) *database { return s.ledger },
	} {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		if err := beside(t, pick(s), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"); err != nil {
			t.Fatal(err)
		}
		newer, err := Open(t.Context(), dir, Options{})
		if !errors.Is(err, store.ErrTooNew) || !strings.Contains(err.Error(), "9999") {
			t.Errorf("opened %v, %v", newer, err)
		}
	}
}

// TestSchemaConstraints writes past the package, as a bug or a person would.
func TestSchemaConstraints(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	id := running(t, s, "d", "")
	if err := s.OpenRoot(t.Context(), id, 5, testTime); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		"status = 'paused'", "status = 'completed'", "completed_at = 5", "result = '{}'",
		"status = 'error', completed_at = 5, result = 'no JSON'", "metadata = '[]'", "metadata = 'x'",
		"parent_id = 'no/such'", "parent_id = thread_id", "turns = -1", "spend = 'much'", "kind = 'x'", "request_key = ''",
	} {
		if err := beside(t, s.registry, "UPDATE threads SET "+change); err == nil {
			t.Errorf("threads: %s was accepted", change)
		}
	}
	for _, change := range []string{
		"status = 'gone'", "max_spend = -1", "reserved_spend = -1", "own_spend = 3", "own_spend = 1.5, actual_spend = 2",
		"parent_id = 'no/such'",
	} {
		if err := beside(t, s.ledger, "UPDATE budgets SET "+change); err == nil {
			t.Errorf("budgets: %s was accepted", change)
		}
	}
	for _, state := range thread.States() {
		change := "UPDATE threads SET status = ?1, completed_at = iif(?2, 5, NULL), result = iif(?2, '{}', NULL)"
		if err := beside(t, s.registry, change, state, state.Terminal()); err != nil {
			t.Errorf("state %s does not fit the schema: %v", state, err)
		}
	}
}

// TestOpenAtOnce opens a folder that does not exist from twelve processes.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	const processes = 12
	dir := filepath.Join(t.TempDir(), "state", "threads")
	players := make([]*crowdtest.Player, processes)
	for i := range players {
		players[i] = start(t, "register", dir)
	}
	for _, p := range players {
		if got := p.Line(); got != "ready" {
			t.Fatalf("process said %q", got)
		}
	}
	for _, p := range players {
		p.GoAhead(t)
	}
	ids := make(map[string]bool)
	for _, p := range players {
		ids[p.Line()] = true
		p.AwaitEnd(t, false)
	}
	for n := range processes {
		if id := thread.NewID("d", testTime, n+1); !ids[string(id)] {
			t.Errorf("%s is missing in %v", id, ids)
		}
	}
}

// A folder that cannot be made is refused with its path. Modes do not bind
// root, so it is one that no user can make.
func TestOpenCannotMakeFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sealed", "threads")
	if err := os.Mkdir(filepath.Dir(dir), 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		dir = "/proc/rye-mcp/threads"
	}
	if s, err := Open(t.Context(), dir, Options{}); err == nil {
		t.Fatalf("opened: %v", s.Close())
	} else if !strings.Contains(err.Error(), filepath.Dir(dir)) {
		t.Errorf("%v does not name %s", err, filepath.Dir(dir))
	}
}
