package postgres_test

import (
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestAwayIsRemembered: a call that has waited for a server in vain is not followed by others that
// wait as long: they do not ask. They do again a moment later, and a thread always does.
func TestAwayIsRemembered(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	url := cluster.Database(t)
	connected := func(patient bool) (*postgres.Server, *postgres.Store) {
		s, err := postgres.Connect(t.Context(), postgres.Options{URL: url, Timeout: 300 * time.Millisecond, Patient: patient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s, open(t, s, "p")
	}
	_, server := connected(false)
	_, threads := connected(true)
	cluster.Stop(t)
	asked := countConnections(t, cluster)
	get := func(st *postgres.Store) (asks int64) {
		t.Helper()
		before := asked.Load()
		_, err := st.Get(t.Context(), "nobody")
		if !errors.Is(err, store.ErrAway) {
			t.Errorf("while it is away: %v", err)
		}
		return asked.Load() - before
	}
	if n := get(server); n < 2 {
		t.Errorf("the first call asks %d times", n)
	}
	if n := get(server); n != 0 {
		t.Errorf("the next call asks %d times", n)
	}
	for range 2 {
		if n := get(threads); n < 2 {
			t.Errorf("a thread asks %d times", n)
		}
	}
	for n := int64(0); n == 0; n = get(server) {
	}
}

// countConnections stands in the place of a server that is away, and counts who asks for it.
func countConnections(t *testing.T, c *pgtest.Cluster) (asked *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(c.Socket(), ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	asked = &atomic.Int64{}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-over
	})
	return asked
}
