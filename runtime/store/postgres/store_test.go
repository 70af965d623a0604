package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
)

// open opens a project, which is closed at the end of the test.
func open(t testing.TB, s *postgres.Server, name string) *postgres.Store {
	t.Helper()
	st, err := s.Project(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return st
}

// TestConformance gives each test a project of its own in one database, so that what
// belongs to one project and not to another shows. Nothing looks by itself.
func TestConformance(t *testing.T) {
	t.Parallel()
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: pgtest.Server(t), Poll: time.Hour, Connections: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var number atomic.Int64
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, s, fmt.Sprintf("project %d", number.Add(1))) })
}
