package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shared.Play()
	// Each check is hundreds of transactions; the command line can ask for more.
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func connect(t testing.TB, url string) *postgres.Server {
	t.Helper()
	return pgstoretest.ConnectTo(t, url)
}

// TestMany: of many that open a new database at once all find the same tables.
func TestMany(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			s, err := postgres.Connect(t.Context(), postgres.Options{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close() //nolint:errcheck // of a test
			p, err := s.Project(t.Context(), "github.com/acme/shop"+strings.Repeat("s", n%2))
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var projects int
	if err := connect(t, url).Pool().QueryRow(t.Context(), "SELECT count(*) FROM projects").Scan(&projects); err != nil || projects != 2 {
		t.Errorf("%d projects, %v", projects, err)
	}
}

// TestLookup: one call finds what is there, for one connection, and nothing else.
func TestLookup(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	s := connect(t, url)
	open(t, s, "p")
	found, p, err := postgres.Lookup(t.Context(), postgres.Options{URL: url}, "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stats(t.Context(), store.StatsSince{}); err != nil {
		t.Error(err)
	}
	if stat := found.Pool().Stat(); stat.NewConnsCount() > 0 {
		t.Errorf("%d connections for what is not used", stat.NewConnsCount())
	}
	if err := errors.Join(p.Close(), found.Close()); err != nil {
		t.Error(err)
	}
	for name, there := range map[string]bool{"p": true, "q": false} {
		p, err := s.Find(t.Context(), name)
		if err != nil || (p != nil) != there {
			t.Fatalf("%s: %v, %v", name, p, err)
		}
		if p != nil {
			_ = p.Close()
		}
	}
	if p, err := s.Find(t.Context(), "q"); p != nil || err != nil {
		t.Errorf("looking has made a project: %v, %v", p, err)
	}
	if _, err := s.Project(t.Context(), ""); err == nil {
		t.Error("a project without a name")
	}
}

// letWork has the owner of a project's schema grant what the guide says.
func letWork(t *testing.T, owner *postgres.Server, schema, role string) {
	t.Helper()
	guide, err := os.ReadFile("../../../spaces/system/ai/knowledge/rye/guides/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(guide), "\n```sql ")
	block, _, found := strings.Cut(block, "\n```")
	_, statements, _ := strings.Cut(block, "\n")
	if !found || !strings.HasPrefix(statements, "GRANT USAGE ON SCHEMA rye, SCHEMA TO rye_worker;") {
		t.Fatalf("the guide has no grants: %q", statements)
	}
	statements = strings.NewReplacer("SCHEMA rye, SCHEMA", "SCHEMA rye, "+pgx.Identifier{schema}.Sanitize(),
		"TO rye_worker", "TO "+pgx.Identifier{role}.Sanitize()).Replace(statements)
	for statement := range strings.SplitSeq(statements, "\n") {
		if _, err := owner.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// TestLeastPrivilege: a role that may only work, as the guide grants it, opens a project,
// works, also with a table that is made later, and changes no table.
func TestLeastPrivilege(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Shared(t)
	for _, role := range []string{"rye_owner", "rye_worker"} {
		c.Exec(t, "DO $$ BEGIN CREATE ROLE "+role+" LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	}
	admin := c.Database(t)
	database := admin[strings.LastIndex(admin, "/")+1 : strings.LastIndex(admin, "?")]
	c.Exec(t, "GRANT CREATE ON DATABASE "+database+" TO rye_owner")
	owner := connect(t, c.URL("rye_owner", database))
	schema := open(t, owner, "shop").Schema()
	letWork(t, owner, schema, "rye_worker")
	if _, err := owner.Pool().Exec(t.Context(), "CREATE TABLE "+schema+".later (n bigserial)"); err != nil {
		t.Fatal(err)
	}
	worker := connect(t, c.URL("rye_worker", database))
	f := newFamily(t, worker, "shop")
	changes := f.store.Changes(t.Context())
	f.child()
	<-changes
	f.exact()
	if _, err := f.store.Pool().Exec(t.Context(), "INSERT INTO later DEFAULT VALUES"); err != nil {
		t.Error(err)
	}
	for _, statement := range []string{"DROP TABLE threads", "ALTER TABLE budgets ADD COLUMN x int", "TRUNCATE threads CASCADE", "CREATE TABLE x ()"} {
		_, err := f.store.Pool().Exec(t.Context(), statement)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if _, err := worker.Project(t.Context(), "another"); !errors.Is(err, postgres.ErrForbidden) {
		t.Errorf("a worker makes a project: %v", err)
	}
}

// TestTooNew: tables of a newer binary are left alone.
func TestTooNew(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := connect(t, pgtest.Server(t))
	p, err := s.Project(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Pool().Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)"); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Project(t.Context(), "p"); !errors.Is(err, store.ErrTooNew) {
		t.Errorf("%v", err)
	}
}

// TestConnectErrors: errors name host, database and user, and not the password.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{Passwords: true})
	c.Exec(t, "CREATE ROLE worker LOGIN PASSWORD 'pa ss'")
	const secret = "hunter2"
	for _, test := range []struct {
		name, url string
		want      error
		says      string
	}{
		{"nobody there", "postgres://me:" + secret + "@127.0.0.1:1/shop", postgres.ErrUnreachable, "me@127.0.0.1:1/shop"},
		{"no such folder", "postgres://me:" + secret + "@/shop?host=/nowhere", postgres.ErrUnreachable, "me@/nowhere/shop"},
		{"wrong password", c.URL("worker:"+secret, "postgres"), postgres.ErrRefused, "worker@" + c.Socket() + "/postgres"},
		{"no such database", c.URL("rye:"+secret, "shop"), postgres.ErrRefused, `"shop" does not exist`},
		{"no such role", c.URL("nobody:"+secret, "postgres"), postgres.ErrRefused, "nobody@"},
		{"may not make schemas", c.URL("worker:pa ss", "postgres"), postgres.ErrForbidden, "worker@"},
		{"another scheme", "mysql://me:" + secret + "@host/shop", postgres.ErrBadURL, "postgres://"},
		{"no URL", "host=db password=" + secret, postgres.ErrBadURL, "postgres://"},
		{"signs in the password", "postgres://me:" + secret + "%zz@host/shop", postgres.ErrBadURL, "%40"},
		{"bad port", "postgres://me:" + secret + "@host:99999/shop", postgres.ErrBadURL, "port"},
		{"bad sslmode", "postgres://me:" + secret + "@host/shop?sslmode=perhaps", postgres.ErrBadURL, "sslmode"},
		{"password as a parameter", "postgres://me@host:0/shop?password=" + secret, postgres.ErrBadURL, "port"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Connect(t.Context(), postgres.Options{URL: test.url})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %v and %q", err, test.want, test.says)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the password is in %q", err)
			}
		})
	}
}

// connectPlain connects as any client does.
func connectPlain(t testing.TB, url string) (*pgx.Conn, error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	}
	return conn, err
}
