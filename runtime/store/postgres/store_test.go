package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// open opens a project, which is closed at the end of the test.
func open(t testing.TB, s *postgres.Server, name string) *postgres.Store {
	t.Helper()
	return pgstoretest.Project(t, s, name)
}

// TestConformance gives each test a project of its own in one database, so that what
// belongs to one project and not to another shows. Nothing looks by itself.
func TestConformance(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: pgtest.Server(t), Poll: time.Hour, Connections: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	storetest.Run(t, newProjects(t, s).open)
}

// TestParallel: a server that runs in parallel whatever it may, as it does with large
// tables, answers as any other, and makes the indexes of large tables.
func TestParallel(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Shared(t)
	url := c.Database(t)
	for _, made := range []string{"project 1", "project 2", "large"} { // without workers, which take seconds
		open(t, connect(t, url), made)
	}
	for _, setting := range []string{"force_parallel_mode = on", "max_parallel_workers_per_gather = 2", "min_parallel_table_scan_size = 0"} {
		c.Exec(t, "ALTER DATABASE "+databaseOf(url)+" SET "+setting)
	}
	s := connect(t, url)
	storetest.Run(t, newProjects(t, s).open, "List/filters", "List/sorted by each key", "Labels/threads by their metadata", "Costs")
	st := open(t, s, "large")
	const many = `SET session_replication_role = replica; INSERT INTO threads (thread_id, kind, directive, created_at, updated_at, last_used)
		SELECT 'd-' || n, 'directive', 'd', n, n + 1, n + 2 FROM generate_series(1, 20000) n; SET session_replication_role = origin; REINDEX TABLE threads`
	for _, statement := range strings.Split(many, "; ") {
		if _, err := st.Pool().Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
