package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// databaseOf is the name of the database of a URL.
func databaseOf(url string) string {
	return url[strings.LastIndex(url, "/")+1 : strings.LastIndex(url, "?")]
}

// throughPooler are the parts of the contract that rely on what a session has: locks,
// settings, notifications, the numbers of transactions.
var throughPooler = []string{"Register", "Queue", "Slots", "Changes", "Ledger", "Fence"}

// TestPoolerSession: through a pgbouncer that keeps a session for each client, without any
// other setting of it, the store is as it is without one. Hints arrive.
func TestPoolerSession(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Shared(t)
	url := c.Pooler(t, "session", "default_pool_size = 60")(databaseOf(c.Database(t)))
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: url, Poll: time.Hour, Connections: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	in, err := s.Inspect(t.Context(), "none")
	if err != nil || in.HintsLost || !in.Local {
		t.Errorf("%+v, %v", in, err)
	}
	storetest.Run(t, newProjects(t, s).open, throughPooler...)
}

// TestPoolerTransaction: a pooler that gives the statements of a client to several sessions
// is found out, however many use it, and nothing is made or changed through it.
func TestPoolerTransaction(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Shared(t)
	for _, mode := range []string{"transaction", "statement"} {
		database := databaseOf(c.Database(t))
		through := c.Pooler(t, mode)(database)
		for _, others := range []int{0, 5} {
			for range others { // sessions of others, which are free
				if _, err := connectPlain(t, through); err != nil {
					t.Fatal(err)
				}
			}
			_, err := postgres.Connect(t.Context(), postgres.Options{URL: through})
			told, _ := errors.AsType[*postgres.Error](err)
			if !errors.Is(err, postgres.ErrPooled) || errors.Is(err, postgres.ErrUnreachable) || !strings.Contains(told.Try(), "pool_mode = session") {
				t.Errorf("%s, %d others: %v", mode, others, err)
			}
		}
		conn, err := connectPlain(t, c.URL("rye", database))
		if err != nil {
			t.Fatal(err)
		}
		var tables int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname !~ '^pg_|^information_schema$'").Scan(&tables); err != nil || tables > 0 {
			t.Errorf("%s: %d tables were made, %v", mode, tables, err)
		}
	}
}
